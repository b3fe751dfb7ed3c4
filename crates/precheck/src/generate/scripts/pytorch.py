"""Runs one recorded operator by itself: on a device as it was recorded, and on the CPU in raised precision.

Needs PyTorch and nothing else. What to run is in the JSON file beside this script, which has the same name.

    python SCRIPT.py                 cuda or npu if there is one, else the CPU
    python SCRIPT.py --device cpu
    python SCRIPT.py --shrink        looks for smaller inputs that fail as well, writes them beside it

Exit code: 0 every output is good, 1 something is wrong, 2 it could not be run.
"""

import argparse
import json
import math
import pathlib
import sys

import torch

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
RAISED = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64}
PLACES = {"Functional": torch.nn.functional, "Tensor": torch.Tensor, "Torch": torch}
LIMITS = {
    # relative limit, small value, absolute limit of small values
    torch.float16: (1e-3, 1e-3, 1e-5),
    torch.bfloat16: (4e-3, 1e-3, 1e-5),
}
OTHER_LIMITS = (1e-6, 1e-6, 1e-9)
ULP = {torch.float16: (-14, 10, 1), torch.bfloat16: (-126, 7, 1), torch.float32: (-126, 23, 32)}


def find_device(name):
    """The device asked for, or the best there is."""
    if name:
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    try:
        import torch_npu  # noqa: F401

        return torch.device("npu")
    except ImportError:
        return torch.device("cpu")


def named_dtype(name):
    dtype = getattr(torch, str(name).split(".")[-1], None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{name} is no dtype of this PyTorch")
    return dtype


def find_function(kind, name):
    place = PLACES[kind]
    for part in name.split("."):
        place = getattr(place, part)
    return place


# Inputs


def load_tensor(path):
    if path.endswith(".npy"):
        import numpy

        return torch.from_numpy(numpy.load(path, allow_pickle=False))
    return torch.load(path, map_location="cpu", weights_only=True)


def random_tensor(described, generator):
    """Values between the recorded ones: the smallest stands first, the largest last."""
    dtype, shape = named_dtype(described["dtype"]), list(described["shape"])
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    low, high = described.get("Min"), described.get("Max")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        raise ValueError(f"the record has no Min and Max of a tensor of shape {shape}: collect statistics")
    ends = [low, high]
    low, high = described.get("Min_except_inf_nan", low), described.get("Max_except_inf_nan", high)
    if any(math.isnan(end) for end in (low, high)):
        return torch.full(shape, math.nan).to(dtype)
    if dtype == torch.bool:
        return torch.randint(int(min(low, high)), int(max(low, high)) + 1, shape, generator=generator) > 0
    if not dtype.is_floating_point and not dtype.is_complex:
        tensor = torch.randint(int(low), int(high) + 1, shape, generator=generator).to(dtype)
    else:
        low, high = (end if math.isfinite(end) else 0.0 for end in (low, high))
        tensor = torch.rand(shape, dtype=torch.float64, generator=generator) * (high - low) + low
        tensor = tensor.to(dtype)
    flat = tensor.reshape(-1)
    flat[0], flat[-1] = ends[0], ends[1]
    return flat.reshape(shape)


def build(value, settings, generator):
    """A recorded argument."""
    if isinstance(value, list):
        return [build(element, settings, generator) for element in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        path = value.get("datapath") or value.get("data_name")
        if path and settings["data_mode"] == "real_data":
            tensor = load_tensor(path)
        else:
            tensor = random_tensor(value, generator)
        if value.get("requires_grad") and tensor.dtype.is_floating_point:
            tensor.requires_grad_(True)
        return tensor
    if kind == "torch.dtype":
        return named_dtype(value["value"])
    if kind == "torch.device":
        return torch.device("cpu")
    if kind == "torch.Size":
        return torch.Size(value["value"])
    if kind == "slice":
        return slice(*value["value"])
    if kind == "ellipsis":
        return ...
    if kind is not None and "value" in value:
        return value["value"]
    return {key: build(element, settings, generator) for key, element in value.items()}


def converted(settings, args):
    """Dtypes that the CPU does not take, as the pre-check converts them."""
    name = settings["name"]
    if name == "cross_entropy":
        return each(lambda tensor: tensor.long() if tensor.dtype == torch.int32 else tensor, args)
    if name == "histc":
        return each(lambda tensor: tensor if tensor.dtype in FLOATS else tensor.float(), args)
    return args


def each(change, value):
    """The same structure with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(each(change, element) for element in value)
    if isinstance(value, dict):
        return {key: each(change, element) for key, element in value.items()}
    return value


def tensors(value):
    found = []
    each(lambda tensor: found.append(tensor) or tensor, value)
    return found


def moved(tensor, device):
    return tensor.detach().clone().to(device).requires_grad_(tensor.requires_grad)


def raised(tensor):
    copy = tensor.detach().clone()
    return copy.to(RAISED.get(copy.dtype, copy.dtype)).requires_grad_(tensor.requires_grad)


# Both runs


def make_inputs(settings, seed):
    generator = torch.Generator().manual_seed(seed)
    forward = settings["forward"]
    recorded = list(forward.get("input_args") or [])
    if settings["name"] == "cross_entropy" and len(recorded) > 1 and isinstance(recorded[1], dict):
        # Classes begin at 0; what is below is left out of the loss.
        low = recorded[1].get("Min")
        if isinstance(low, (int, float)) and low <= 0:
            recorded[1] = {**recorded[1], "Min": 0, "Min_except_inf_nan": 0}
    args = converted(settings, build(recorded, settings, generator))
    kwargs = {
        key: build(value, settings, generator) for key, value in (forward.get("input_kwargs") or {}).items()
    }
    gradients = []
    if settings["propagation"] == "backward":
        backward = settings["backward"]
        gradients = build(backward.get("grad_input") or backward.get("input") or [], settings, generator)
    return args, kwargs, gradients


def run(settings, inputs, change, device):
    args, kwargs, gradients = (each(change, part) for part in inputs)
    if "device" in kwargs:
        kwargs["device"] = device
    # What is written into in place must not be a leaf.
    leaves = [tensor for tensor in tensors(args) + tensors(kwargs) if tensor.requires_grad]
    given = {id(leaf): leaf * 1 if leaf.dtype.is_floating_point else leaf for leaf in leaves}
    used = lambda tensor: given.get(id(tensor), tensor)  # noqa: E731
    torch.manual_seed(settings["random_seed"])
    output = find_function(settings["kind"], settings["name"])(*each(used, args), **each(used, kwargs))
    if settings["propagation"] != "backward":
        return output
    first = output[0] if isinstance(output, (list, tuple)) else output
    return list(torch.autograd.grad(first, leaves, gradients[:1] or None, allow_unused=True))


# Metrics


def share(mask, of=None):
    count = mask.numel() if of is None else int(of.sum())
    return float(mask.sum()) / count if count else 0


def metrics(standard, bench, device):
    """Rows of the table of a tensor."""
    if device.dtype not in FLOATS:
        standard = "binary_consistency"
    if standard == "binary_consistency":
        return [
            ("Compare Standard", "Binary Equality Standard"),
            ("Error Rate", share(bench != device.to(bench.dtype))),
        ]
    b, d = bench.to(torch.float64), device.to(torch.float64)
    error, size = (b - d).abs(), b.abs()
    relative = error / (size + (2.0**-52 if bench.dtype == torch.float64 else 2.0**-23))
    finite = torch.isfinite(d) & torch.isfinite(b)
    rtol, small_value, atol = LIMITS.get(device.dtype, OTHER_LIMITS)
    small = finite & (size <= small_value)
    normal = finite & ~small
    if standard == "absolute_threshold":
        return [
            ("Compare Standard", "Absolute Threshold Standard"),
            ("Relative Error Ratio", share((relative > rtol) & normal, normal)),
            ("Absolute Error Ratio", share((error > atol) & small, small)),
        ]
    if standard == "ulp_compare" and device.dtype in ULP:
        lowest, bits, limit = ULP[device.dtype]
        exponent = torch.where(b == 0, torch.zeros_like(b), size.log2().floor()).clamp(min=lowest)
        units = ((d - b) * torch.exp2(bits - exponent)).abs()
        return [
            ("Compare Standard", "ULP error Standard"),
            ("Maximum ULP Error", float(units.max())),
            ("Mean ULP Error", float(units.mean())),
            ("ULP Error Proportion", share(units > limit)),
        ]
    if standard == "thousandth_threshold":
        return [("Compare Standard", "Thousandth Standard"), ("Thousandth ratio", share(relative < 0.001))]
    some = bool(normal.any())
    return [
        ("Compare Standard", "Benchmark Standard"),
        ("Small Value Error Proportion", share((error > atol) & small, small)),
        ("Maximum Relative Error", float(relative[normal].max()) if some else 0),
        ("Mean Relative Error", float(relative[normal].mean()) if some else 0),
        ("Root Mean Squared Error", math.sqrt(float((error[normal] ** 2).mean())) if some else 0),
        ("Error Balance", abs(int((d > b).sum()) - int((d < b).sum())) / b.numel()),
    ]


def judge(bench, device):
    """Empty if a tensor is good enough, else why it is not: the rules of the pre-check."""
    if device.dtype not in FLOATS:
        rate = share(bench != device.to(bench.dtype))
        return f"{rate:.6g} of the elements differ" if rate else ""
    b, d = bench.to(torch.float64).reshape(-1), device.to(torch.float64).reshape(-1)
    agree = (torch.isnan(b) & torch.isnan(d)) | (
        bench.to(device.dtype).reshape(-1) == device.reshape(-1)
    ) & torch.isinf(d)
    b, d = b[~agree], d[~agree]
    if not b.numel():
        return ""
    error = (b - d).abs()
    if not bool(torch.isfinite(error).all()):
        return "NaN or infinity on one side"
    if b.numel() > 1 and bool(b.any() or d.any()):
        norms = float(b.norm() * d.norm())
        cosine = float(b @ d) / norms if norms else 0.0
        if not cosine > 0.99:
            return f"the cosine similarity is {cosine:.6g}, not above 0.99"
    if float(error.max()) < 0.001:
        return ""
    relative = error / (b.abs() + torch.finfo(bench.dtype).eps)
    limit = 0.01 if device.dtype in (torch.float16, torch.bfloat16) else 0.001
    good = share(relative < limit)
    return "" if good > 1 - limit else f"{1 - good:.6g} of the relative errors are {limit} or more"


def text_of(rows):
    cells = [("Metric", "Value"), *((name, str(value)) for name, value in rows)]
    widths = [max(len(row[column]) for row in cells) for column in (0, 1)]
    line = lambda mark: "+" + "+".join(mark * (width + 2) for width in widths) + "+"  # noqa: E731
    lines = [line("-")]
    for index, row in enumerate(cells):
        lines.append("|" + "|".join(f" {cell:<{width}} " for cell, width in zip(row, widths)) + "|")
        lines.append(line("=" if index == 0 else "-"))
    return "\n".join(lines)


def compare(settings, bench, device, say):
    """What is wrong, output by output."""
    if type(bench) is not type(device):
        return ["ERROR: out_device and out_bench is not the same type!"]
    if isinstance(bench, (list, tuple)):
        if len(bench) != len(device):
            return ["ERROR: len of out_device and out_bench is different!"]
        wrong = []
        for index, (one, other) in enumerate(zip(bench, device)):
            say(f"index {index}:")
            wrong += [f"index {index}: {text}" for text in compare(settings, one, other, say)]
        return wrong
    if not isinstance(bench, torch.Tensor):
        same = bench == device
        ends = "PASS: out_device and out_bench equals."
        say(ends if same else "ERROR: out_device and out_bench is not equal!")
        return [] if same else [f"{device!r} is not {bench!r}"]
    device = device.detach().cpu()
    bench = bench.detach()
    if bench.shape != device.shape:
        return ["ERROR: shape of out_device and out_bench is not equal!"]
    if not bench.numel():
        say("Both out_device and out_bench have zero elements.")
        return []
    if (bench.dtype in FLOATS) != (device.dtype in FLOATS):
        return [
            f"ERROR: out_device dtype is {device.dtype}, out_bench dtype is {bench.dtype}, not comparable."
        ]
    rows = [
        ("Shape", device.shape),
        ("Dtype of out_device", device.dtype),
        ("Dtype of out_bench", bench.dtype),
    ]
    say(text_of(rows + metrics(settings["standard"], bench, device)))
    wrong = judge(bench, device)
    return [wrong] if wrong else []


def check(settings, inputs, device, say):
    on_device = run(settings, inputs, lambda tensor: moved(tensor, device), str(device))
    on_bench = run(settings, inputs, raised, "cpu")
    say("Compare result:")
    return compare(settings, on_bench, on_device, say)


# Smaller inputs


def cut(value, size, smaller):
    """Every tensor with its dimensions of one size cut."""

    def change(tensor):
        for dim, own in enumerate(tensor.shape):
            if own == size:
                tensor = tensor.narrow(dim, 0, smaller)
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    return tuple(each(change, part) for part in value)


def plainer(value):
    """Every float tensor with values of a quarter of the bits."""
    return tuple(
        each(
            lambda t: (
                ((t.detach() * 4).round() / 4).requires_grad_(t.requires_grad) if t.dtype in FLOATS else t
            ),
            part,
        )
        for part in value
    )


def still_fails(settings, inputs, device):
    try:
        return bool(check(settings, inputs, device, lambda text: None))
    except Exception:
        return False


def shrink(settings, inputs, device):
    """Inputs that are as small as they get by halving sizes, and fail still."""
    found = True
    while found:
        found = False
        sizes = {size for part in inputs for tensor in tensors(part) for size in tensor.shape if size > 1}
        for size in sorted(sizes, reverse=True):
            smaller = cut(inputs, size, size // 2)
            if still_fails(settings, smaller, device):
                inputs, found = smaller, True
                break
    simple = plainer(inputs)
    return simple if still_fails(settings, simple, device) else inputs


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", help="cpu, cuda:0, npu:0, ...")
    parser.add_argument("--shrink", action="store_true", help="look for smaller inputs that fail as well")
    asked = parser.parse_args()
    script = pathlib.Path(__file__)
    settings = json.loads(script.with_suffix(".json").read_text(encoding="utf-8"))
    device = find_device(asked.device)
    wrong = []
    try:
        for iteration in range(settings["iter_times"]):
            print(f"iter: {iteration}:")
            inputs = make_inputs(settings, settings["random_seed"] + iteration)
            now = check(settings, inputs, device, print)
            wrong += now
            for text in now:
                print(text if text.startswith("ERROR") else f"ERROR: {text}")
            if now and asked.shrink:
                inputs = shrink(settings, inputs, device)
                path = script.with_suffix(".small.pt")
                torch.save([each(lambda tensor: tensor.detach(), part) for part in inputs], path)
                shapes = ", ".join(str(tuple(tensor.shape)) for part in inputs for tensor in tensors(part))
                print(f"Smaller inputs that fail as well: {shapes}; they are in {path}")
                break
    except Exception as error:
        print(f"The operator could not be run: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print("Compare finished.")
    print(f"Verdict: {'error' if wrong else 'pass'} on {device}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
