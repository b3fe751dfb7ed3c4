"""The jobs of the benchmark of two runs, each in a process of its own: making the files, and comparing them.

Runs under the interpreter of either tool. One JSON argument says what to do; the last line of standard output
is the answer, in JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def make_key_data(order: dict[str, Any]) -> dict[str, Any]:
    """Keys with as many micro steps as there are pairs; one element in a thousand differs."""
    random = np.random.default_rng(1)
    for key in range(order["keys"]):
        for pair in range(order["pairs"]):
            values = random.standard_normal(order["elements"], dtype=np.float32)
            for run in ("a", "b"):
                place = f"data/key{key}/step0/rank0/micro_step{pair}/key{key}.npy"
                path = Path(order["folder"]) / run / place
                path.parent.mkdir(parents=True)
                np.save(path, values)
                values[::1000] *= np.float32(1.001)
    return {}


def make_gradients(order: dict[str, Any]) -> dict[str, Any]:
    """Directions of which one in a hundred differs, and the tables that name the parameters."""
    random = np.random.default_rng(1)
    names = [f"layers.{number}.weight" for number in range(order["parameters"])]
    table = "\r\n".join(
        ["\ufeffparam_name,max,min,norm,shape", *(f"{name},1.0,-1.0,1.0,[1]" for name in names), ""]
    )
    for rank in range(order["ranks"]):
        for step in range(order["steps"]):
            for run in ("a", "b"):
                directory = Path(order["folder"]) / run / f"rank{rank}"
                (directory / f"step{step}").mkdir(parents=True)
                (directory / f"grad_summary_{step}.csv").write_bytes(table.encode())
            for name in names:
                values = random.integers(0, 2, order["elements"], dtype=np.uint8).astype(bool)
                for run in ("a", "b"):
                    np.save(Path(order["folder"]) / run / f"rank{rank}/step{step}/{name}.npy", values)
                    values[::100] ^= True
    return {}


def timed(call: Callable[[], object]) -> dict[str, Any]:
    """Wall and processor time of a call, children included."""

    def processor() -> float:
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in both)

    begin, before = time.perf_counter(), processor()
    with contextlib.redirect_stdout(io.StringIO()):
        call()
    return {"seconds": time.perf_counter() - begin, "processor_seconds": processor() - before}


def compare_key_data(order: dict[str, Any]) -> dict[str, Any]:
    from msprobe.core import SingleComparator

    folder = order["folder"]
    return timed(lambda: SingleComparator.compare(f"{folder}/a", f"{folder}/b", order["output"]))


def compare_gradients(order: dict[str, Any]) -> dict[str, Any]:
    from msprobe import GradComparator

    folder = order["folder"]
    return timed(lambda: GradComparator.compare_distributed(f"{folder}/a", f"{folder}/b", order["output"]))


JOBS = {
    "make_key_data": make_key_data,
    "make_gradients": make_gradients,
    "compare_key_data": compare_key_data,
    "compare_gradients": compare_gradients,
}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(JOBS[given["job"]](given)))
