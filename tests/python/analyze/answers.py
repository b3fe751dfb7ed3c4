"""The command under test, run on a step of a dump."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..compare.faults.score import binary


@dataclass(frozen=True)
class Answer:
    """What a run of the command left behind."""

    code: int
    # Standard output, parsed.
    report: dict[str, Any]
    stderr: str
    out: Path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """``msprobe -f pytorch …``."""
    line = [str(binary()), "-f", "pytorch", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)


def command(step: Path, out: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return run("nan_analyze", "-i", str(step), "-o", str(out), *flags)


def ask(step: Path, out: Path, *flags: str) -> Answer:
    done = command(step, out, "--format", "json", *flags)
    assert done.stdout, f"exit {done.returncode}\n{done.stderr}"
    report = json.loads(done.stdout, parse_constant=_refuse)
    return Answer(done.returncode, report, done.stderr, out)


def _refuse(word: str) -> Any:
    """Reports are for any reader of JSON: numbers that are not finite are strings in them."""
    raise AssertionError(f"{word} is not JSON")


def is_finite(value: Any) -> bool:
    """Whether a value of a record, whatever it is made of, holds nothing that is not finite."""
    if isinstance(value, list):
        return all(is_finite(item) for item in value)
    if isinstance(value, dict):
        figures = [value[key] for key in ("Max", "Min") if value.get(key) is not None]
        below = [item for item in value.values() if isinstance(item, (dict, list))]
        return all(math.isfinite(figure) for figure in figures) and is_finite(below)
    return True
