"""The jobs of the key-data benchmark, each in a process of its own: saving with either tool, and plain numpy.

Runs under the interpreter of either tool. One JSON argument says what to do; the last line of standard output
is the answer, in JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def tensors(order: dict[str, Any]) -> list[Any]:
    import torch

    generator = torch.Generator().manual_seed(1)
    return [torch.randn(order["elements"], generator=generator) for _ in range(order["keys"])]


def save(order: dict[str, Any]) -> dict[str, Any]:
    """Seconds of the caller in ``save``, and until everything is on disk.

    The first step is told apart: it makes the directories above, and memory that is used again.
    """
    from msprobe.core import SingleSave

    saver = SingleSave(order["folder"])
    data = {f"key{number}": tensor for number, tensor in enumerate(tensors(order))}
    caller, total = [], []
    for _ in range(order["runs"] + 1):
        begin = time.perf_counter()
        saver.save(data)
        caller.append(time.perf_counter() - begin)
        saver.step()
        total.append(time.perf_counter() - begin)
    return {"first_caller": caller[0], "caller": min(caller[1:]), "total": min(total[1:])}


def numpy_save(order: dict[str, Any]) -> dict[str, Any]:
    """Seconds of ``np.save`` of the same arrays into new files."""
    import numpy as np

    arrays = [tensor.numpy() for tensor in tensors(order)]
    total = []
    for run in range(order["runs"] + 1):
        folder = Path(order["folder"]) / str(run)
        folder.mkdir(parents=True)
        begin = time.perf_counter()
        for number, array in enumerate(arrays):
            np.save(folder / f"key{number}.npy", array)
        total.append(time.perf_counter() - begin)
    return {"total": min(total[1:])}


JOBS = {"save": save, "numpy_save": numpy_save}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(JOBS[given["job"]](given)))
