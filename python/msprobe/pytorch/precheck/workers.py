"""What a worker process of ``multi_run_ut`` runs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from msprobe import _native
from msprobe.core.precheck.arguments import DeviceChoice
from msprobe.pytorch.precheck.check import Checker
from msprobe.pytorch.precheck.devices import choose_device, switch_compilation
from msprobe.pytorch.precheck.repeatable import without_dropout

FACTORY = f"{__name__}:make_checker"


def make_checker(
    api_info: str,
    device: DeviceChoice,
    filter_api: bool,
    white_list: Sequence[str],
    black_list: Sequence[str],
    error_data: str | None,
    is_strict: bool,
    jit_compile: bool,
    imports: Sequence[str],
    threads: int | None,
) -> Callable[[int], str]:
    """A function from the place of an operator in the plan to its outcome as JSON."""
    import torch

    for module in imports:
        importlib.import_module(module)
    if threads is not None:
        torch.set_num_threads(threads)
    chosen = choose_device(device)
    switch_compilation(chosen, jit_compile)
    plan = _native.PrecheckPlan(api_info, "pytorch", filter_api, white_list, black_list)
    checker = Checker(plan, chosen, None if error_data is None else Path(error_data), is_strict)
    # For the whole life of this process, which does nothing else.
    without_dropout().__enter__()
    return lambda position: checker.check(position).to_json()
