"""All cases, their configuration, and the directories in which they are collected."""

from __future__ import annotations

import json
from pathlib import Path

from . import cases_harmless, cases_local, cases_traffic
from .registry import CASES, Case

__all__ = ["CASES", "Case", "cases_harmless", "cases_local", "cases_traffic", "configuration", "step_directory"]


def configuration(folder: Path, level: str, task: str) -> str:
    """The path of a configuration file of its own for these."""
    path = folder / f"config_{level}_{task}.json"
    if not path.exists():
        settings = {"task": task, "dump_path": str(folder / "unused"), "level": level, task: {}}
        path.write_text(json.dumps(settings))
    return str(path)


def step_directory(folder: Path, level: str, name: str) -> Path:
    return folder / level / name / "step0"
