"""Names that scripts import from the package and this version does not have."""

from __future__ import annotations

import sys
from typing import NoReturn

# What there is instead, by name.
_PYTORCH = {
    "TrainerMon": "the task grad_probe records gradients step by step (PrecisionDebugger.monitor), "
    "statistics.flight_recorder watches a long run for NaN and Inf",
}
_MINDSPORE = {
    "TrainerMon": "the task grad_probe records gradients step by step (PrecisionDebugger.monitor)",
}
_KNOWN = {"msprobe.pytorch": _PYTORCH, "msprobe.mindspore": _MINDSPORE}


def refuse(module: str, name: str) -> NoReturn:
    """Raises for an attribute that a module does not have. To be called by the module's ``__getattr__``.

    ``from … import`` takes any AttributeError for a name nobody has heard of, and passes an ImportError on
    as it is; whoever only asks, as ``hasattr`` does, is to get the AttributeError.
    """
    instead = _KNOWN.get(module, {}).get(name)
    if instead is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    message = f"{name} of {module} is not in this version: {instead}"
    # Frames from here: the module's __getattr__, then whoever asks for the attribute.
    if sys._getframe(2).f_code.co_name == "_handle_fromlist":
        raise ImportError(message, name=module)
    raise AttributeError(message)
