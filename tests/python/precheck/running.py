"""Pre-checks run by the command, and their tables read back."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "precheck"


class Tables(NamedTuple):
    """Rows with their headers, and the raw bytes."""

    result: list[list[str]]
    details: list[list[str]]
    result_bytes: bytes
    details_bytes: bytes


class Finished(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str


def command(*arguments: Any, cwd: Path, timeout: float = 300.0, **environment: str) -> Finished:
    """``msprobe`` in a process of its own."""
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    ended = subprocess.run(
        [sys.executable, "-m", "msprobe", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Finished(ended.returncode, ended.stdout, ended.stderr)


def run_ut(
    *arguments: Any, cwd: Path, name: str = "run_ut", framework: str = "pytorch", **more: Any
) -> Finished:
    return command("-f", framework, name, *arguments, cwd=cwd, **more)


def tables(directory: Path) -> Tables:
    """The one pair of tables in a directory."""
    (result,) = directory.glob("accuracy_checking_result*.csv")
    (details,) = directory.glob("accuracy_checking_details*.csv")
    return Tables(rows_of(result), rows_of(details), result.read_bytes(), details.read_bytes())


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def write_dump(directory: Path, data: dict[str, Any], **more: Any) -> Path:
    """A statistics dump."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "dump.json"
    whole = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, **more}
    path.write_text(json.dumps({**whole, "data": data}))
    return path
