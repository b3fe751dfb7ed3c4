"""Random tensors saved by both tools: files must hold the same arrays and figures.

``python differential.py REFERENCE_PYTHON [COUNT]``, with the interpreter of a venv that has the reference.
Arrays must have the same elements; the reference keeps the memory order of a transposed tensor in its header,
ours is always row-major. ``max`` and ``min`` must be equal, ``mean`` and ``norm`` within the dtype.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
PRECISION = {"float16": 2.0**-9, "bfloat16": 2.0**-6}


def make(rng: random.Random) -> tuple[str, Any]:
    """A tensor with its dtype: any shape, any strides, sometimes with what is not finite."""
    import torch

    dtype = rng.choice(DTYPES)
    shape = [rng.randint(1, 9) for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.1:
        shape = [rng.randint(60_000, 80_000)]
    scale = 10 ** rng.uniform(-25, 25) if rng.random() < 0.2 else 10 ** rng.uniform(-2, 2)
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(rng.getrandbits(32)))
    tensor = tensor.double() * scale
    if rng.random() < 0.2 and shape:
        tensor.view(-1)[0] = rng.choice([float("nan"), float("inf"), -float("inf")])
    if "int" in dtype or dtype == "bool":
        tensor = tensor.nan_to_num(0.0, 0.0, 0.0).clamp(-1e18, 1e18)
    if dtype == "uint8":
        tensor = tensor.abs().clamp(max=255)
    tensor = tensor.to(getattr(torch, dtype))
    if tensor.dim() > 1 and rng.random() < 0.5:
        tensor = tensor.permute(rng.sample(range(tensor.dim()), tensor.dim()))
    if tensor.dim() and rng.random() < 0.3:
        tensor = tensor[..., :: rng.randint(1, 3)]
    if rng.random() < 0.1:
        tensor = tensor.unsqueeze(0).expand(3, *tensor.shape)
    return dtype, tensor


def save(folder: str, count: int) -> None:
    from msprobe.core import SingleSave

    rng = random.Random(7)
    saver = SingleSave(folder)
    for number in range(count):
        dtype, tensor = make(rng)
        saver.save({f"{dtype}_{number}": tensor})
    saver.step()


def check(ours: Path, theirs: Path) -> list[str]:
    import numpy as np

    wrong = []
    names = sorted(path.relative_to(theirs) for path in theirs.rglob("*") if path.is_file())
    if names != sorted(path.relative_to(ours) for path in ours.rglob("*") if path.is_file()):
        return ["the trees differ"]
    for name in names:
        if name.suffix == ".npy":
            a, b = np.load(ours / name), np.load(theirs / name)
            # Which NaN a half-precision one becomes depends on torch's mood; that it is one does not.
            if (a.dtype, a.shape) != (b.dtype, b.shape) or not np.array_equal(a, b, equal_nan=True):
                wrong.append(f"{name}: {a.dtype} {a.shape} {b.dtype} {b.shape}")
            continue
        first, second = ((json.loads((root / name).read_text()))["data"] for root in (ours, theirs))
        # The reference adds float32 to float32, and loses digits of long sums that ours keeps.
        limit = PRECISION.get(name.stem.rsplit("_", 1)[0], 1e-4)
        scale = max(abs(second["max"]), abs(second["min"]))
        for figure, allowed in (("max", 0.0), ("min", 0.0), ("mean", limit), ("norm", limit)):
            a, b = first[figure], second[figure]
            # A mean near zero is what is left of terms of the size of the largest.
            slack = allowed * scale if figure == "mean" and np.isfinite(scale) else 0.0
            # Squares that float32 cannot hold to the last digit, or at all.
            slack = 1e-18 if figure == "norm" and scale < 1e-18 else slack
            if not np.isclose(a, b, rtol=allowed, atol=slack, equal_nan=True):
                wrong.append(f"{name} {first['shape']} {figure}: {a} instead of {b}")
        if list(first) != list(second) or first["shape"] != second["shape"]:
            wrong.append(f"{name}: {first} {second}")
    return wrong


def main() -> int:
    reference, count = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "400"
    with tempfile.TemporaryDirectory(prefix="differential") as folder:
        # A path to our package would have us compared with ourselves.
        without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        for python, name, environment in (
            (sys.executable, "ours", dict(os.environ)),
            (reference, "theirs", without),
        ):
            command = [python, __file__, "--save", f"{folder}/{name}", count]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        wrong = check(Path(folder) / "ours", Path(folder) / "theirs")
    print("\n".join(wrong[:50]))
    print(f"{count} tensors, {len(wrong)} differences")
    return int(bool(wrong))


if __name__ == "__main__":
    if sys.argv[1] == "--save":
        save(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())
