"""All cases, and the files of a corpus: configurations and directories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import cases_harmless, cases_local, cases_traffic
from .registry import CASES, Case

# Importing these modules is what fills CASES.
SOURCES = (cases_harmless, cases_local, cases_traffic)

__all__ = [
    "CASES",
    "SOURCES",
    "Case",
    "configuration",
    "records",
    "stack_of",
    "step_directory",
    "write_configuration",
]


def configuration(folder: Path, level: str, task: str) -> Path:
    return folder / f"config_{level}_{task}.json"


def write_configuration(folder: Path, level: str, task: str) -> None:
    settings = {"task": task, "dump_path": str(folder / "unused"), "level": level, task: {}}
    configuration(folder, level, task).write_text(json.dumps(settings))


def step_directory(folder: Path, level: str, name: str) -> Path:
    return folder / level / name / "step0"


def records(step: Path, rank: int) -> dict[str, Any]:
    """The records of a rank by name."""
    data = json.loads((step / f"rank{rank}" / "dump.json").read_text())["data"]
    assert isinstance(data, dict)
    return data


def stack_of(step: Path, rank: int, name: str) -> list[str]:
    """The frames of a call. Only forward calls have some: a backward one is shown by its forward."""
    entries = json.loads((step / f"rank{rank}" / "stack.json").read_text()).values()
    forward = name.replace(".backward", ".forward")
    return next((frames for names, frames in entries if forward in names), [])
