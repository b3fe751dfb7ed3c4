"""What a worker process of MindSpore's ``multi_run_ut`` runs."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Callable

from msprobe import _native
from msprobe.mindspore.precheck.check import Checker

FACTORY = f"{__name__}:make_checker"


def make_checker(api_info: str, device: int, error_data: str | None) -> Callable[[int], str]:
    """A function from the place of an operator in the plan to its outcome as JSON."""
    plan = _native.PrecheckPlan(api_info, "mindspore")
    if plan.data_dir is None:
        mindspore: Any = importlib.import_module("mindspore")
        if mindspore.get_context("device_target") != "CPU":
            mindspore.set_context(device_id=device)
    checker = Checker(plan, None if error_data is None else Path(error_data))
    return lambda position: checker.check(position).to_json()
