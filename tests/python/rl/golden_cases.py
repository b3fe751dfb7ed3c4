"""Recorded runs of the reference: their calls made again, and the trees that come out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

GOLDEN = Path(__file__).parents[2] / "golden" / "rl_collect"
TIMEOUT_SECS = 300
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d+\) (\[(?:WARNING|ERROR)\] .*)$", re.MULTILINE)
# What half precision can tell apart; sums of everything else are rounded to float32.
PRECISION = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


class Replayed(NamedTuple):
    """What a rank said: the outcome of each call, and its warnings and errors."""

    outcome: list[dict[str, str] | None]
    log: list[str]


def sides(fmk: str) -> list[tuple[str, str]]:
    """Cases with recorded calls, and which of the two runs."""
    found = []
    for path in sorted(GOLDEN.glob("*/calls_[ab].json")):
        if json.loads(path.read_text()).get("fmk", "pytorch") == fmk:
            found.append((path.parent.name, path.stem[-1]))
    return found


def calls(case: str, side: str) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads((GOLDEN / case / f"calls_{side}.json").read_text())
    return spec


def run_ranks(commands: list[list[str]], folder: Path) -> list[str]:
    """Processes side by side, and what each printed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    printed = [process.communicate(timeout=TIMEOUT_SECS)[0] for process in started]
    assert [process.returncode for process in started] == [0] * len(started), printed
    return printed


def replay(case: str, side: str, folder: Path) -> list[Replayed]:
    """All ranks of a recorded run, a process for each; `dump_{side}` appears in the folder."""
    script, recorded = GOLDEN / "replay.py", GOLDEN / case / f"calls_{side}.json"
    ranks = sorted(calls(case, side)["calls"], key=int)
    commands = [[str(script), "save", str(recorded), f"dump_{side}", rank] for rank in ranks]
    return [replayed(printed) for printed in run_ranks(commands, folder)]


def replayed(printed: str) -> Replayed:
    (outcome,) = re.findall(r"^OUTCOME (.*)$", printed, re.MULTILINE)
    return Replayed(json.loads(outcome), LOG_LINE.findall(printed))


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def array(path: Path) -> tuple[bytes, np.ndarray[Any, Any]]:
    """The header of a file, up to the data, and its array."""
    loaded = np.load(path)
    return path.read_bytes()[: -loaded.nbytes or None], loaded


def check_tree(ours: Path, golden: Path, precision: dict[str, float], tolerance: float = 0.0) -> None:
    """The same files with the same content. `tolerance` is for numbers that the framework computed anew."""
    assert files(ours) == files(golden)
    for name in files(golden):
        if name.endswith(".npy"):
            (header, found), (expected_header, expected) = array(ours / name), array(golden / name)
            assert header == expected_header, name
            if tolerance:
                np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)
            else:
                assert found.tobytes() == expected.tobytes(), name
        elif name.endswith("configurations.json"):
            assert (ours / name).read_bytes() == (golden / name).read_bytes()
        else:
            check_figures(ours / name, golden / name, precision.get(name.split("/")[1], 0.0), tolerance)


def check_figures(ours: Path, golden: Path, precision: float, tolerance: float) -> None:
    text = ours.read_text()
    found, expected = json.loads(text), json.loads(golden.read_text())
    # Layout, order of keys and every number's dress are what Python's json makes of the values.
    assert text == json.dumps(found, indent=4)
    assert re.sub(r": -?[\dNI][^,\n]*", "", text) == re.sub(r": -?[\dNI][^,\n]*", "", golden.read_text())
    for record, other in zip(records(found["data"]), records(expected["data"]), strict=True):
        assert record["shape"] == other["shape"], ours
        for figure, limit in (("max", 0.0), ("min", 0.0), ("mean", 1e-6), ("norm", 1e-6)):
            limit = max(tolerance, precision if precision and limit else limit)
            np.testing.assert_allclose(
                record[figure], other[figure], rtol=limit, atol=tolerance, err_msg=f"{ours} {figure}"
            )


def records(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, list):
        return data
    return [data] if "shape" in data and isinstance(data["shape"], list) else list(data.values())


def precisions(case: str, side: str) -> dict[str, float]:
    """What the figures of each key can tell apart, where it is less than float32."""
    found: dict[str, float] = {}
    for call in calls(case, side)["calls"].values():
        for one in call:
            data = one.get("data") if one["op"] in ("save", "save_ex") else None
            for key, value in (data or {}).items():
                if "t" in value:
                    found[key] = max(found.get(key, 0.0), PRECISION.get(value["t"]["dtype"], 0.0))
    return found
