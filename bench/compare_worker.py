"""The jobs of the comparison benchmark that want a process of their own: making dumps, running the reference.

Runs under the interpreter of either tool and imports nothing of this project. One JSON argument says what to
do; the last line of standard output is the answer, in JSON. All that needs much memory is done here: the
kernel counts what a parent had when it started a process as that process's peak.
"""

from __future__ import annotations

import base64
import json
import os
import random
import struct
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, TextIO

NAMES = [
    "Functional.linear",
    "Functional.layer_norm",
    "Functional.gelu",
    "Functional.softmax",
    "Functional.dropout",
    "Torch.matmul",
    "Torch.cat",
    "Torch.add",
    "Tensor.view",
    "Tensor.transpose",
    "Tensor.__mul__",
    "Tensor.__add__",
]
HEAD = """{
 "task": "%s",
 "level": "L1",
 "framework": "pytorch",
 "dump_data_dir": %s,
 "data": {"""
# One tensor, laid out as the reference lays it out; the figures are filled in.
LEAF = """
    {
     "type": "torch.Tensor",
     "dtype": "torch.float32",
     "shape": %s,
     "Max": %r,
     "Min": %r,
     "Mean": %r,
     "Norm": %r,
     "requires_grad": true%s
    }"""
# What a record with a sketch has besides.
SKETCH = """,
     "sketch": "%s\""""
RECORD = """%s
  "%s": {
   "input_args": [%s
   ],
   "input_kwargs": {},
   "output": [%s
   ]
  }"""
STACK_LINES = [
    "File site-packages/torch/nn/modules/linear.py, line 134, in forward, \n return F.linear(x)",
    "File site-packages/torch/nn/modules/module.py, line 1789, in _call_impl, \n return call(x)",
    "File model/attention.py, line {line}, in forward, \n query = self.query(hidden)",
    "File site-packages/torch/nn/modules/module.py, line 1789, in _call_impl, \n return call(x)",
    "File model/block.py, line 48, in forward, \n x = x + self.attention(self.norm(x))",
    "File train.py, line 92, in <module>, \n loss = model(batch)",
]
# As many calls come from the same line, as the layers of a loop do.
CALLS_PER_STACK = 8
BLOCK_BYTES = 1 << 24
MILLION = 1_000_000


def api_name(number: int) -> str:
    return f"{NAMES[number % len(NAMES)]}.{number // len(NAMES)}.forward"


def leaf(largest: float, factor: float = 1.0, sketched: bool = False) -> str:
    value = largest * factor
    more = SKETCH % sketch(largest, factor) if sketched else ""
    return LEAF % ("[8, 1024, 768]", value, -0.9 * value, 0.01 * value, 700 * value, more)


def sketch(largest: float, factor: float) -> str:
    """A text of the form sketches of float tensors have; with another factor the elements are other ones."""
    same, other = random.Random(largest), random.Random(largest * factor)
    signed = same if factor < 1.1 else other
    content = struct.pack("<Qh", other.getrandbits(64), 16) + (700 * 4096).to_bytes(3, "little")
    content += (
        signed.randbytes(7 * 8) + signed.randbytes(3 * 8) + struct.pack("<H", 12) + signed.randbytes(3 * 8)
    )
    return "1c" + base64.b64encode(content).decode().rstrip("=")


def write_stacks(file: TextIO, apis: int) -> None:
    stacks = {
        str(index): [
            [api_name(number) for number in range(first, min(first + CALLS_PER_STACK, apis))],
            [line.replace("{line}", str(100 + index % 400)) for line in STACK_LINES],
        ]
        for index, first in enumerate(range(0, apis, CALLS_PER_STACK))
    }
    json.dump(stacks, file, indent=1)


def write_statistics(folder: Path, apis: int, sketched: bool = False) -> dict[str, Any]:
    """Two dumps without tensor files: an API has two inputs and an output, 5 % of the rows get a colour."""

    def tensor(largest: float, factor: float = 1.0) -> str:
        return leaf(largest, factor, sketched)

    for side in ("npu", "bench"):
        (folder / side).mkdir(parents=True)
    values = random.Random(4)
    with (folder / "npu/dump.json").open("w") as npu, (folder / "bench/dump.json").open("w") as bench:
        for file in (npu, bench):
            file.write(HEAD % ("statistics", "null"))
        for number in range(apis):
            before, name = ("," if number else ""), api_name(number)
            first, second, output = (values.uniform(0.5, 8.0) for _ in range(3))
            # Three outputs of twenty stand out: about half of them red, half of them yellow.
            draw = values.random()
            factor = 1.7 if draw < 0.075 else 1.2 if draw < 0.15 else 1.0000004
            bench.write(RECORD % (before, name, tensor(first) + "," + tensor(second), tensor(output)))
            near = tensor(first, 1.0000003) + "," + tensor(second)
            npu.write(RECORD % (before, name, near, tensor(output, factor)))
        for file in (npu, bench):
            file.write("\n }\n}")
    with (folder / "npu/stack.json").open("w") as file:
        write_stacks(file, apis)
    return {"json_bytes": (folder / "npu/dump.json").stat().st_size}


def write_tensor_dump(folder: Path, side: str, leaves: list[list[str]]) -> None:
    """dump.json of a dump with tensor files; ``leaves`` has what to fill in per API, input before output."""
    with (folder / side / "dump.json").open("w") as file:
        file.write(HEAD % ("tensor", '"dump_tensor_data"'))
        for number, texts in enumerate(leaves):
            before = "," if number else ""
            file.write(RECORD % (before, api_name(number), ",".join(texts[:-1]), texts[-1]))
        file.write("\n }\n}")


def write_tensors(folder: Path, pairs: int) -> dict[str, Any]:
    """``pairs`` pairs of a million float32, two to an API, each side a little different from the other."""
    import torch

    torch.manual_seed(4)
    size_bytes = 0
    values = {"npu": torch.empty(0), "bench": torch.empty(0)}
    leaves: dict[str, list[list[str]]] = {"npu": [], "bench": []}
    for side in leaves:
        (folder / side / "dump_tensor_data").mkdir(parents=True)
    for index in range(pairs):
        values["bench"] = torch.randn(MILLION)
        values["npu"] = values["bench"] * (1 + 1e-4 * torch.rand(MILLION))
        number, which = index // 2, ("input.0", "output.0")[index % 2]
        for side, value in values.items():
            name = f"{api_name(number)}.{which}.pt"
            path = folder / side / "dump_tensor_data" / name
            torch.save(value, path)
            size_bytes += path.stat().st_size
            figures = (value.max().item(), value.min().item(), value.mean().item(), value.norm().item())
            if index % 2 == 0:
                leaves[side].append([])
            text = LEAF % (f"[{MILLION}]", *figures, f',\n     "data_name": "{name}"')
            leaves[side][-1].append(text)
    for side, texts in leaves.items():
        write_tensor_dump(folder, side, texts)
    return {"size_bytes": size_bytes}


def data_offset(path: Path) -> int:
    """Where the elements of the only tensor of a .pt begin."""
    with zipfile.ZipFile(path) as archive:
        (entry,) = (entry for entry in archive.infolist() if entry.filename.endswith("/data/0"))
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        header = file.read(30)
    return (
        entry.header_offset
        + 30
        + int.from_bytes(header[26:28], "little")
        + int.from_bytes(header[28:30], "little")
    )


def write_large(folder: Path, elements: int) -> dict[str, Any]:
    """One pair of large tensors.

    Every sixteenth block is written, the rest are holes: reading them takes as many pages as if they were on
    the disk, but making them takes no time.
    """
    import torch

    torch.manual_seed(4)
    block = torch.randn(BLOCK_BYTES // 4)
    size_bytes = 4 * elements
    for side, factor in (("npu", 1.0001), ("bench", 1.0)):
        (folder / side / "dump_tensor_data").mkdir(parents=True)
        name = f"{api_name(0)}.output.0.pt"
        path = folder / side / "dump_tensor_data" / name
        with torch.serialization.skip_data():
            torch.save(torch.empty(elements), path)
        offset = data_offset(path)
        content = (block * factor).numpy().tobytes()
        with path.open("r+b") as file:
            for start in range(0, size_bytes, 16 * BLOCK_BYTES):
                file.seek(offset + start)
                file.write(content[: size_bytes - start])
        figures = (4.0 * factor, -4.0 * factor, 0.0, 1000.0 * factor)
        text = LEAF % (f"[{elements}]", *figures, f',\n     "data_name": "{name}"')
        write_tensor_dump(folder, side, [[text]])
    return {"size_bytes": 2 * size_bytes}


def run_reference(folder: Path, output: Path, stacks: bool) -> dict[str, Any]:
    """The reference's comparison of a folder made above. Its import is not part of the time."""
    from msprobe.pytorch import compare  # type: ignore[attr-defined, unused-ignore]

    paths = {
        "npu_json_path": str(folder / "npu/dump.json"),
        "bench_json_path": str(folder / "bench/dump.json"),
        "is_print_compare_log": False,
    }
    if stacks:
        paths["stack_json_path"] = str(folder / "npu/stack.json")
    output.mkdir()
    begin = time.perf_counter()
    compare(paths, str(output), stack_mode=stacks)
    seconds = time.perf_counter() - begin
    if not list(output.glob("compare_result*.xlsx")):
        raise RuntimeError("the reference wrote no table")
    return {"seconds": seconds}


def main() -> None:
    order = json.loads(sys.argv[1])
    # The reference refuses what others may write to.
    os.umask(0o027)
    folder = Path(order["folder"])
    if order["job"] == "reference":
        answer = run_reference(folder, Path(order["output"]), order["stacks"])
    elif order["job"] in ("statistics", "sketched"):
        answer = write_statistics(folder, order["count"], sketched=order["job"] == "sketched")
    elif order["job"] == "tensors":
        answer = write_tensors(folder, order["count"])
    else:
        answer = write_large(folder, order["count"])
    print("\n" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
