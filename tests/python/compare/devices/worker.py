"""Trains many cases in one process, collecting at one level and with one task.

Run by ``corpus.py``: python -m tests.python.compare.devices.worker ROOT MODE CASE ...
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

from msprobe.pytorch import PrecisionDebugger


def configuration(mode: str, dump_path: Path) -> dict[str, Any]:
    """``sketch`` is statistics with fingerprints."""
    level, _, task = mode.partition("-")
    if task == "sketch":
        section = {"summary_mode": "statistics", "sketch": True}
        return {"task": "statistics", "dump_path": str(dump_path), "level": level, "statistics": section}
    return {"task": task, "dump_path": str(dump_path), "level": level, task: {}}


def make_debugger(folder: Path, mode: str) -> Any:
    """The one of this process; where it writes is set before each training."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.json"
    config.write_text(json.dumps(configuration(mode, folder)))
    return PrecisionDebugger(config_path=str(config))


def collect(debugger: Any, path: Path, model: nn.Module, step: Any) -> None:
    """One training step, written to ``path`` as a whole or not at all."""
    partial = path.with_name(f".{path.name}")
    shutil.rmtree(partial, ignore_errors=True)
    debugger.service.config.dump_path = str(partial)
    debugger.set_init_step(0)
    torch.manual_seed(1000)
    debugger.start(model)
    step()
    debugger.stop()
    debugger.step()
    partial.rename(path)


def train(debugger: Any, path: Path, case: Any, *, is_target: bool) -> None:
    """One side of a case."""
    from ..faults import inject
    from . import models
    from .sums import other_device

    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    variant = case.variant if is_target else "plain"
    torch.set_num_threads(2 if variant == "threads" else 1)
    attention = "sdpa" if variant == "attention" else "eager"
    model, batch = models.build(case.model, case.dtype, case.seed, attention)
    if variant == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        batch["pixel_values"] = batch["pixel_values"].contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    device: AbstractContextManager[Any] = other_device() if variant == "sums" else nullcontext()
    injection = case.inject if is_target else inject.nothing
    if variant == "compiled":
        from .cases import COMPILED

        model.get_submodule(COMPILED[case.model]).compile()
    with device, injection(model, batch):
        collect(
            debugger,
            path,
            model,
            lambda: models.train_step(model, batch, case.dtype, optimizer, case.is_cached),
        )


def share(golden: Path, path: Path) -> None:
    """The plain training of a case, by links to the files of the one that was run."""
    if not path.exists():
        partial = path.with_name(f".{path.name}")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(golden, partial, copy_function=os.link)
        partial.rename(path)


def main(root: str, mode: str, *names: str) -> None:
    torch.set_num_threads(1)
    # Before transformers is imported, which takes functions by value.
    debugger = make_debugger(Path(root) / ".golden" / "config" / mode, mode)
    from .cases import all_cases

    chosen = [case for case in all_cases() if case.name in names and case.world == 1]
    # Compiled ones last: the compiler changes more of torch than it says.
    for case in sorted(chosen, key=lambda case: case.variant == "compiled"):
        golden = Path(root) / ".golden" / case.golden_key / mode
        train(debugger, golden, case, is_target=False)
        folder = Path(root) / case.name / mode
        train(debugger, folder / "target", case, is_target=True)
        share(golden, folder / "golden")
        print(case.name, mode, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
