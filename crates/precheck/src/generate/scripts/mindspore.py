"""Runs one recorded operator of MindSpore by itself, against the same operator of PyTorch on the CPU.

Needs MindSpore, PyTorch and numpy, and nothing else. What to run is in the JSON file of the same name
beside this script. Writes accuracy_checking_result_TIME.csv and accuracy_checking_details_TIME.csv to
./op_result_output.

Exit code: 0 every output is good, 1 something is wrong, 2 it could not be run.
"""

import csv
import json
import math
import pathlib
import sys
import time

import mindspore
import numpy
import torch
from mindspore import Tensor, mint, ops

OUTPUT = pathlib.Path("op_result_output")
RESULT = ["API Name", "Forward Test Success", "Backward Test Success", "Message"]
DETAILS = [
    "API Name",
    "Bench Dtype",
    "Tested Dtype",
    "Shape",
    "Cosine",
    "MaxAbsErr",
    "MaxRelativeErr",
    "Status",
    "Message",
]
NUMPY = {
    "Bool": "bool",
    "Int8": "int8",
    "UInt8": "uint8",
    "Int16": "int16",
    "UInt16": "uint16",
    "Int32": "int32",
    "UInt32": "uint32",
    "Int64": "int64",
    "UInt64": "uint64",
    "Float16": "float16",
    "Float32": "float32",
    "Float64": "float64",
}
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def values_of(described, settings):
    """A tensor as float64 or integers of numpy, and its dtype's name."""
    dtype = described["dtype"]
    name = described.get("data_name")
    if settings["data_mode"] == "real_data" and name:
        path = pathlib.Path(settings.get("real_data_path") or ".") / name
        return numpy.load(path, allow_pickle=False), dtype
    shape = tuple(described["shape"])
    low, high = described.get("Min"), described.get("Max")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        raise ValueError(f"the record has no Min and Max of a tensor of shape {shape}: collect statistics")
    # Every tensor from the same start, so that each iteration has the same inputs.
    numpy.random.seed(settings["random_seed"])
    if dtype == "Bool":
        return numpy.random.rand(*shape) > 0.5, dtype
    low, high = (end if math.isfinite(end) else 0.0 for end in (low, high))
    drawn = numpy.random.uniform(low, high, shape)
    return (drawn if dtype == "BFloat16" else drawn.astype(NUMPY[dtype])), dtype


def as_mindspore(values, dtype):
    if dtype == "BFloat16":
        return Tensor(values.astype(numpy.float32), mindspore.bfloat16)
    return Tensor(values)


def as_torch(values, dtype):
    if dtype == "BFloat16":
        return torch.from_numpy(values.astype(numpy.float32)).to(torch.bfloat16)
    return torch.from_numpy(numpy.array(values))


def torch_dtype(name):
    lowered = str(name).rsplit(".", 1)[-1].lower()
    dtype = getattr(torch, lowered, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{name} is no dtype of PyTorch")
    return dtype


def build(value, settings, make, dtype):
    if isinstance(value, list):
        return tuple(build(element, settings, make, dtype) for element in value)
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind == "mindspore.Tensor":
        return make(*values_of(value, settings))
    if kind == "mindspore.dtype":
        return dtype(value["value"])
    if kind == "slice":
        return slice(*value["value"])
    if "value" in value:
        return value["value"]
    return {key: build(element, settings, make, dtype) for key, element in value.items()}


def mindspore_dtype(name):
    dtype = getattr(mindspore, str(name).rsplit(".", 1)[-1].lower(), None)
    if dtype is None:
        raise ValueError(f"{name} is no dtype of MindSpore")
    return dtype


def find(places, settings):
    place = places[settings["kind"]]
    for part in settings["name"].split("."):
        place = getattr(place, part)
    return place


def as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def run_torch(settings):
    places = {"Mint": torch, "MintFunctional": torch.nn.functional, "Tensor": torch.Tensor}
    places.update(Torch=torch, Functional=torch.nn.functional)
    forward = settings["forward"]
    args = build(forward.get("input_args") or [], settings, as_torch, torch_dtype)
    kwargs = build(forward.get("input_kwargs") or {}, settings, as_torch, torch_dtype)
    function = find(places, settings)
    if settings["propagation"] == "forward":
        return as_list(function(*args, **kwargs))
    leaves = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.dtype in FLOATS]
    for leaf in leaves:
        leaf.requires_grad_(True)
    outputs = as_list(function(*args, **kwargs))
    gradients = build(settings["backward"].get("input") or [], settings, as_torch, torch_dtype)
    for output, gradient in zip(outputs, gradients):
        output.backward(gradient, retain_graph=True)
    return [leaf.grad for leaf in leaves]


def run_mindspore(settings):
    places = {"Mint": mint, "MintFunctional": mint.nn.functional, "Tensor": Tensor}
    places.update(Torch=mint, Functional=ops)
    forward = settings["forward"]
    args = build(forward.get("input_args") or [], settings, as_mindspore, mindspore_dtype)
    kwargs = build(forward.get("input_kwargs") or {}, settings, as_mindspore, mindspore_dtype)
    function = find(places, settings)
    if settings["propagation"] == "forward":
        return as_list(function(*args, **kwargs))
    gradients = build(settings["backward"].get("input") or [], settings, as_mindspore, mindspore_dtype)
    gradient = gradients[0] if len(gradients) == 1 else tuple(gradients)

    def net(*given):
        return function(*given, **kwargs)

    return as_list(ops.GradOperation(get_all=True, sens_param=True)(net)(*args, gradient))


def plain(value):
    """float64 of numpy, and the name of the dtype as MindSpore has it."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).rsplit(".", 1)[-1]
        names = {numpy_name: own for own, numpy_name in NUMPY.items()}
        return value.detach().to(torch.float64).numpy(), names.get(name, "BFloat16")
    if isinstance(value, Tensor):
        return value.astype(mindspore.float64).asnumpy(), str(value.dtype)
    return None, type(value).__name__


def compare(bench, tested):
    """The cells of a row behind its name."""
    (b, b_dtype), (t, t_dtype) = plain(bench), plain(tested)
    shape = str(tuple(b.shape)) if b is not None else ""
    if b is None or t is None or b.shape != t.shape:
        what = "two inputs are not valid for computing {}, skip comparing "
        message = what.format("cosine similarity") + what.format("max absolute difference")
        return [b_dtype, t_dtype, shape, "", "", "", "error", message]
    b, t = b.reshape(-1), t.reshape(-1)
    cosine = (1e-8 + float(b @ t)) / (1e-8 + float(numpy.linalg.norm(b) * numpy.linalg.norm(t)))
    error = numpy.abs(b - t)
    largest = float(error.max()) if error.size else 0.0
    relative = float((error / numpy.where(b == 0, 1e-8, numpy.abs(b))).max()) if error.size else 0.0
    message = "" if cosine > 0.99 else "cosine similarity is less than threshold: 0.99 "
    if not largest < 0.001:
        message += "max absolute difference is greater than threshold: 0.001 "
    return [b_dtype, t_dtype, shape, cosine, largest, relative, "error" if message else "pass", message]


def kept(values, settings):
    """What takes part: no Nones, and of gradients only floats."""
    values = [value for value in values if value is not None]
    if settings["propagation"] == "forward":
        return values
    return [value for value in values if "loat" in str(getattr(value, "dtype", ""))]


def append(path, header, rows):
    fresh = not path.exists()
    with path.open("a", encoding="utf-8-sig" if fresh else "utf-8", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(header)
        writer.writerows(rows)
    path.chmod(0o640)


def main():
    script = pathlib.Path(__file__)
    settings = json.loads(script.with_suffix(".json").read_text(encoding="utf-8"))
    stamp = time.strftime("%Y%m%d%H%M%S")
    OUTPUT.mkdir(mode=0o750, exist_ok=True)
    name, direction = settings["api_name"], settings["propagation"]
    is_wrong = False
    try:
        for iteration in range(settings["iter_times"]):
            print(f"iter: {iteration}:")
            bench, tested = kept(run_torch(settings), settings), kept(run_mindspore(settings), settings)
            if len(bench) != len(tested):
                print(
                    f"PyTorch gives {len(bench)} outputs and MindSpore {len(tested)}: compared by their place"
                )
            rows = []
            for index, pair in enumerate(zip(bench, tested)):
                rows.append([f"{name}.{direction}.output.{index}", *compare(*pair)])
            for row in rows:
                print(", ".join(f"{header}: {cell}" for header, cell in zip(DETAILS, row)))
            status = "pass" if all(row[7] == "pass" for row in rows) else "error"
            is_wrong |= status == "error"
            both = [status, ""] if direction == "forward" else ["", status]
            append(OUTPUT / f"accuracy_checking_details_{stamp}.csv", DETAILS, rows)
            result = [[name, *both, "".join(row[8] for row in rows)]]
            append(OUTPUT / f"accuracy_checking_result_{stamp}.csv", RESULT, result)
    except Exception as error:
        print(f"The operator could not be run: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print("Compare finished.")
    print(f"Verdict: {'error' if is_wrong else 'pass'}")
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
