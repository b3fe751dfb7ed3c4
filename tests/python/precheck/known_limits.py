"""Operators that are right and do not pass, and why: `docs/precheck.md` lists them under "Known limits"."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """A row of the details that is an error."""

    name: str
    dtype: str
    message: str
    is_strict: bool

    @property
    def api(self) -> str:
        return self.name.split(".")[1]

    @property
    def direction(self) -> str:
        return self.name.split(".")[-3]


_HALVES = {"torch.float16", "torch.bfloat16"}
_LOWERED = {"linear", "addmm", "conv2d", "matmul", "bmm", "scaled_dot_product_attention"}

LIMITS: dict[str, Callable[[Row], bool]] = {
    "equal NaN or Inf on both sides are an error by the default rules": lambda row: (
        not row.is_strict and "Dump data has NaN" in row.message
    ),
    "attention in a half type keeps its weights in that type": lambda row: (
        row.api == "scaled_dot_product_attention" and row.dtype in _HALVES
    ),
    "batch_norm in a half type, where scale and shift cancel": lambda row: (
        row.api == "batch_norm" and row.dtype in _HALVES
    ),
    "the gradient of an embedding in a half type is summed in that type": lambda row: (
        row.api == "embedding" and row.direction == "backward" and row.dtype in _HALVES
    ),
    "a gradient in float16 without loss scaling is below the smallest normal number": lambda row: (
        row.direction == "backward" and row.dtype == "torch.float16" and "Cosine" in row.message
    ),
    "arguments of several float types under autocast are rounded by the device alone, by the default rules": (
        lambda row: not row.is_strict and row.api in _LOWERED
    ),
}


def reason_of(row: Row) -> str | None:
    """Why it is no fault of the operator; None for a false alarm."""
    return next((reason for reason, holds in LIMITS.items() if holds(row)), None)
