"""What runs between backward and the next step, so that its operations get a parent: gradient clipping and
the optimizer. Also keeps recomputed forward passes whole."""

from __future__ import annotations

import sys
from typing import Any, Callable

import torch
import torch.utils.checkpoint

from msprobe import _native
from msprobe.core.collection.replacing import Replacements
from msprobe.core.collection.window import Window

_CLIPPERS = ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")
_MEGATRON = ("megatron.core.optimizer.clip_grads", "megatron.core.optimizer.optimizer")
_MEGATRON_CLIPPERS = ("clip_grad_norm_fp32", "clip_grad_by_total_norm_fp32", "get_grad_norm_fp32")


def install_phases(collector: _native.Collector, window: Window, replacements: Replacements) -> None:
    """Marks operations of optimizers and of gradient clipping."""
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    def before(*_: Any) -> None:
        if window.open:
            collector.set_phase("optimizer")

    def after(*_: Any) -> None:
        if window.open:
            collector.set_phase(None)

    def marked(original: Callable[..., Any]) -> Callable[..., Any]:
        def clip(*args: Any, **kwargs: Any) -> Any:
            if not window.open:
                return original(*args, **kwargs)
            collector.set_phase("clip_grad")
            try:
                return original(*args, **kwargs)
            finally:
                collector.set_phase(None)

        return clip

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
    clippers = [(torch.nn.utils.clip_grad, name) for name in _CLIPPERS]
    clippers += [(sys.modules.get(path), name) for path in _MEGATRON for name in _MEGATRON_CLIPPERS]
    for owner, name in clippers:
        original = getattr(owner, name, None)
        if original is not None and not replacements.wrapped(original, "clip_grad", marked):
            replacements.attribute(owner, name, marked(original))


class WholeRecomputation:
    """While a window is open, recomputation runs to the end of the forward pass instead of stopping at the
    last tensor that backward needs, so that no record is left half done. What is computed for backward
    is the same; what stands behind it in the function runs once more (docs/collection.md).

    It is a setting of the framework's, which whoever calls ``checkpoint`` reads, from wherever they have it.
    """

    _NAME = "_enable_checkpoint_early_stop"

    def __init__(self) -> None:
        self._before: Any = None
        self._is_set = False

    def set(self, is_open: bool) -> None:
        settings = torch.utils.checkpoint
        if is_open == self._is_set or not hasattr(settings, self._NAME):
            return
        self._is_set = is_open
        if is_open:
            self._before = getattr(settings, self._NAME)
            setattr(settings, self._NAME, False)
        elif getattr(settings, self._NAME) is False:
            setattr(settings, self._NAME, self._before)
