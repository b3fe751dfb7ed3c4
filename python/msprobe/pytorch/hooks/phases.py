"""What runs between backward and the next step, so that its operations get a parent: gradient clipping and
the optimizer. Also keeps recomputed forward passes whole."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, Callable

import torch
import torch.utils.checkpoint

from msprobe import _native
from msprobe.pytorch.hooks.window import Window

_CLIPPERS = ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")
_MEGATRON = ("megatron.core.optimizer.clip_grads", "megatron.core.optimizer.optimizer")
_MEGATRON_CLIPPERS = ("clip_grad_norm_fp32", "clip_grad_by_total_norm_fp32", "get_grad_norm_fp32")


def install_phases(collector: _native.Collector, window: Window) -> None:
    """Marks operations of optimizers and of gradient clipping."""
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    def before(*_: Any) -> None:
        if window.open:
            collector.set_phase("optimizer")

    def after(*_: Any) -> None:
        if window.open:
            collector.set_phase(None)

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
    for name in _CLIPPERS:
        _wrap_clipper(torch.nn.utils, name, collector, window)
        _wrap_clipper(torch.nn.utils.clip_grad, name, collector, window)
    for path in _MEGATRON:
        for name in _MEGATRON_CLIPPERS:
            _wrap_clipper(sys.modules.get(path), name, collector, window)


def _wrap_clipper(owner: Any, name: str, collector: _native.Collector, window: Window) -> None:
    original: Callable[..., Any] | None = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def clip(*args: Any, **kwargs: Any) -> Any:
        if not window.open:
            return original(*args, **kwargs)
        collector.set_phase("clip_grad")
        try:
            return original(*args, **kwargs)
        finally:
            collector.set_phase(None)

    setattr(owner, name, clip)


def install_checkpoint(window: Window) -> None:
    """While a window is open, recomputation runs to the end of the forward pass instead of stopping at the
    last tensor that backward needs, so that no record is left half done. Results are the same."""
    original = torch.utils.checkpoint.checkpoint
    if getattr(original, "_msprobe", False):
        return

    @functools.wraps(original)
    def checkpoint(*args: Any, **kwargs: Any) -> Any:
        whole = (
            torch.utils.checkpoint.set_checkpoint_early_stop(False)
            if window.open
            else contextlib.nullcontext()
        )
        with whole:
            return original(*args, **kwargs)

    checkpoint._msprobe = True  # type: ignore[attr-defined]
    torch.utils.checkpoint.checkpoint = checkpoint
