"""Trains many cases in one process, collecting at one level and with one task.

Run by ``generate.py``: python -m tests.python.compare.faults.worker OUT LEVEL TASK [CASE ...]
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from msprobe.pytorch import PrecisionDebugger


def make_debugger(folder: Path, level: str, task: str) -> Any:
    """The one of this process; where it writes is set before each training."""
    folder.mkdir(parents=True, exist_ok=True)
    is_md5 = task == "md5"
    section = {"summary_mode": "md5" if is_md5 else "statistics"}
    name = "statistics" if is_md5 else task
    config = folder / "config.json"
    config.write_text(json.dumps({"task": name, "dump_path": str(folder), "level": level, name: section}))
    return PrecisionDebugger(config_path=str(config))


def train(debugger: Any, path: Path, case: Any, *, is_target: bool) -> None:
    """One side of a case."""
    from . import inject, models

    torch.set_num_threads(case.threads if is_target else case.golden_threads)
    model, batch = models.build((is_target and case.target_model) or case.model, case.train)
    injection = case.inject if is_target else inject.nothing
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05) if case.steps > 1 else None
    debugger.service.config.dump_path = str(path)
    debugger.set_init_step(0)
    for step in range(case.steps):
        # Both sides draw the same random numbers, whatever building the model and injecting took.
        with injection(model, batch) if step >= case.faulty_from else nullcontext():
            torch.manual_seed(1000 + step)
            debugger.start(model)
            models.train_step(model, batch, optimizer)
            debugger.stop()
            debugger.step()


def main(out: str, level: str, task: str, *names: str) -> None:
    folder = Path(out) / f"{level}-{task}"
    # Before transformers is imported, which takes functions by value.
    debugger = make_debugger(folder, level, task)
    from .faults import all_cases

    done = set()
    for case in all_cases():
        if (
            case.world > 1
            or level not in case.levels
            or task not in case.tasks
            or (names and case.name not in names)
        ):
            continue
        if case.golden_key not in done:
            done.add(case.golden_key)
            train(debugger, folder / "golden" / case.golden_key, case, is_target=False)
        train(debugger, folder / "target" / case.name, case, is_target=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
