"""What PyTorch is doing right now, as cheaply as it can be asked."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any, Callable

import torch

unseen: Callable[[], AbstractContextManager[None]] = torch._C.DisableTorchFunction
"""Inside, neither ``__torch_function__`` of a subclass nor a mode of the user's sees what the tool asks."""

is_mode_enabled: Callable[[], bool] = getattr(torch._C, "_is_torch_function_mode_enabled", lambda: True)
"""Whether a mode of the user's is on. Old versions cannot tell."""


def _fake_mode() -> Callable[[], Any]:
    """Not in old versions."""
    try:
        return functools.partial(torch._C._get_dispatch_mode, torch._C._TorchDispatchModeKey.FAKE)
    except AttributeError:
        return lambda: None


fake_mode = _fake_mode()
"""What makes tensors of this thread ones without elements, if anything does: torch works out shapes so."""


def _is_compiling() -> Callable[[], bool]:
    """torch 2.1 has it under another name."""
    newer: Callable[[], bool] | None = getattr(torch.compiler, "is_compiling", None)
    if newer is not None:
        return newer
    from torch._dynamo import is_compiling

    older: Callable[[], bool] = is_compiling
    return older


is_compiling = _is_compiling()
"""Whether the code that asks is being compiled rather than run."""
