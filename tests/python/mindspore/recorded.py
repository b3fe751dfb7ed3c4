"""Recorded cases: run with this package, and compared with what the reference left."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parents[2] / "golden" / "dump_mindspore"
# What the reference adds up in 32 bits, and in 16.
_CLOSE, _CLOSE_HALF = 1e-5, 2e-3
# A sum of squares beyond this is Infinity in 16 bits.
_LARGEST_HALF = 65504.0


def run(folder: Path, script: str = "run.py", *, fails: bool = False) -> str:
    """Runs a script in its folder and gives what it printed."""
    # Kernels of wider vectors round otherwise, and checksums were recorded with these.
    environment = {**os.environ, "GLOG_v": "3", "MSPROBE_LOG_LEVEL": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    text = done.stdout + done.stderr
    assert (done.returncode != 0) == fails, text
    return text


def run_case(name: str, folder: Path) -> str:
    """Runs a recorded case in an empty folder. What it does for the reference's sake is left out."""
    source = GOLDEN / name
    script = (source / "run.py").read_text().replace("import cpu_compat\n", "")
    (folder / "run.py").write_text(script)
    shutil.copy(source / "config.json", folder)
    return run(folder)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def check_case(name: str, folder: Path) -> None:
    """Compares what a case left with what was recorded: the tree, each value, parents, stacks, arrays."""
    ours, golden = folder / "output", GOLDEN / name / "output"
    assert files_below(ours) == files_below(golden)
    for path in golden.rglob("*"):
        mine = ours / path.relative_to(golden)
        if path.name in ("dump.json", "debug.json"):
            check_dump(read(mine), read(path), folder)
        elif path.name == "construct.json":
            assert read(mine) == read(path)
        elif path.name == "stack.json":
            assert [names for names, _ in read(mine).values()] == [names for names, _ in read(path).values()]
            assert all(frames for _, frames in read(mine).values())
        elif path.suffix == ".npy":
            check_array(mine, path)
    for path in ours.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o750 if path.is_dir() else 0o640), path


def check_dump(mine: dict[str, Any], golden: dict[str, Any], folder: Path) -> None:
    assert list(mine) == list(golden)
    for key in ("task", "level", "framework"):
        assert mine[key] == golden[key]
    where = golden["dump_data_dir"]
    assert mine["dump_data_dir"] == (where and where.replace("<case>", str(folder.resolve())))
    assert list(mine["data"]) == list(golden["data"])
    for name, record in golden["data"].items():
        check_value(mine["data"][name], record, name)


def check_value(mine: Any, golden: Any, where: str) -> None:
    if isinstance(golden, dict):
        assert isinstance(mine, dict) and list(mine) == list(golden), f"{where}: {mine} {golden}"
        for key, value in golden.items():
            place = f"{where}.{key}"
            if key in ("Max", "Min", "Mean", "Norm"):
                check_figure(mine[key], value, golden, place)
            else:
                check_value(mine[key], value, place)
    elif isinstance(golden, list):
        assert isinstance(mine, list) and len(mine) == len(golden), f"{where}: {mine} {golden}"
        for index, value in enumerate(golden):
            check_value(mine[index], value, f"{where}.{index}")
    else:
        assert type(mine) is type(golden) and mine == golden, f"{where}: {mine} {golden}"


def check_figure(mine: Any, golden: Any, tensor: dict[str, Any], where: str) -> None:
    if golden is None or isinstance(golden, (bool, int)):
        assert type(mine) is type(golden) and mine == golden, f"{where}: {mine} {golden}"
        return
    is_half = tensor["dtype"] == "Float16"
    if is_half and where.endswith("Norm") and golden == math.inf and mine * mine > _LARGEST_HALF:
        return
    close = _CLOSE_HALF if is_half else _CLOSE
    largest = max((abs(tensor[key]) for key in ("Max", "Min") if tensor[key] is not None), default=0.0)
    # A mean of numbers that cancel is as exact as they are.
    floor = 1e-6 * largest if math.isfinite(largest) else 0.0
    is_same = mine == golden or (math.isnan(golden) and math.isnan(mine))
    assert is_same or math.isclose(mine, golden, rel_tol=close, abs_tol=floor), f"{where}: {mine} {golden}"


def check_array(mine: Path, golden: Path) -> None:
    ours, theirs = np.load(mine), np.load(golden)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, mine
    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True), mine
