"""The MindSpore side. Comparing needs no MindSpore, so importing this imports none; its names do."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from msprobe.core.common.not_here import refuse

if TYPE_CHECKING:
    from msprobe.mindspore.callbacks import MsprobeInitStep, MsprobeStep
    from msprobe.mindspore.debugger.precision_debugger import PrecisionDebugger
    from msprobe.mindspore.seed import seed_all
    from msprobe.mindspore.single_point import save, save_grad

_HOMES = {
    "PrecisionDebugger": "debugger.precision_debugger",
    "seed_all": "seed",
    "MsprobeStep": "callbacks",
    "MsprobeInitStep": "callbacks",
    "save": "single_point",
    "save_grad": "single_point",
}

__all__ = ["MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "save", "save_grad", "seed_all"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        refuse(__name__, name)
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
