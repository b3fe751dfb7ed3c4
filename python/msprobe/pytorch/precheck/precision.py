"""In which precision the bench computes, and whether the device computes under autocast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

_RAISED = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float64,
}
_AS_THEY_ARE = {"type_as"}
_SINGLE_STAYS = {"conv1d", "conv2d"}


class Precision(NamedTuple):
    """How one API is computed on both sides."""

    name: str
    is_mixed: bool
    autocast: torch.dtype | None
    is_lowered: bool = False
    """Whether the bench computes with what autocast leaves of the arguments."""
    is_raised: bool = True
    """Whether the bench computes in more than the recorded dtypes."""

    def as_given(self, tensor: torch.Tensor) -> torch.Tensor:
        """The argument as the device's function sees it, as far as the bench is to know."""
        if self.is_lowered and self.autocast is not None and tensor.dtype in _RAISED:
            return tensor.to(self.autocast).to(tensor.dtype)
        return tensor

    def as_computed(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient of an argument of the device in the dtype it was computed in."""
        if self.is_lowered and self.autocast is not None and gradient.dtype is torch.float32:
            narrow = gradient.to(self.autocast)
            return narrow if torch.equal(narrow.to(gradient.dtype), gradient) else gradient
        return gradient

    def raised(self, dtype: torch.dtype) -> torch.dtype:
        """What the bench has in place of ``dtype``."""
        if not self.is_raised or dtype not in _RAISED or self.name in _AS_THEY_ARE:
            return dtype
        if dtype is torch.float32 and self.name in _SINGLE_STAYS:
            return dtype
        return torch.float32 if self.is_mixed else _RAISED[dtype]

    def raised_gradient(self, dtype: torch.dtype) -> torch.dtype:
        """The same for the gradient of the output, whose own dtype counts."""
        return Precision(self.name, False, None).raised(dtype)


def plan_precision(
    name: str, given: Iterable[torch.Tensor], recorded_output: Any, is_strict: bool = False
) -> Precision:
    """What the dtypes of the arguments, and that of the output in the dump, ask for.

    Several float dtypes, or an output of another one than the arguments, come from training under autocast.
    It rounds the arguments before the function sees them, which is not an error of the function: where the
    output alone tells of autocast, and by the strict rules always, the bench gets them rounded.
    """
    dtypes = list(dict.fromkeys(tensor.dtype for tensor in given if tensor.dtype in _RAISED))
    if len(dtypes) > 1:
        narrow = next(dtype for dtype in dtypes if dtype is not torch.float32)
        return Precision(name, True, narrow, is_strict and _dtype_of(recorded_output) is narrow)
    autocast = _dtype_of(recorded_output)
    if not dtypes or autocast == dtypes[0] or autocast is torch.float32:
        # Of float16 and a float32 output, the call itself made the difference.
        autocast = None
    return Precision(name, False, autocast, autocast is not None)


def _dtype_of(description: Any) -> torch.dtype | None:
    """The float dtype of a described tensor."""
    text = description.get("dtype") if isinstance(description, dict) else None
    return next((dtype for dtype in _RAISED if str(dtype) == text), None)
