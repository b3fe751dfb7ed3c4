"""Tensors made of what a dump tells of them: dtype, shape, smallest and largest element.

Elements lie evenly between both. The first and the last of them are the extremes themselves, so that the
range, an infinity and a NaN of the recorded tensor are in the made one too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from msprobe.core.common.exceptions import CompareException
from msprobe.pytorch.log import logger

FLOATS = {
    "torch.float16": torch.float16,
    "torch.half": torch.float16,
    "torch.bfloat16": torch.bfloat16,
    "torch.float32": torch.float32,
    "torch.float": torch.float32,
    "torch.float64": torch.float64,
    "torch.double": torch.float64,
}
_INF = math.inf


class Extremes:
    """Smallest and largest element: those to draw between, and those that were recorded."""

    def __init__(self, info: Mapping[str, Any]) -> None:
        self.low_recorded = info.get("Min")
        self.high_recorded = info.get("Max")
        self.low = info.get("Min_except_inf_nan", self.low_recorded)
        self.high = info.get("Max_except_inf_nan", self.high_recorded)
        if 0 in info.get("shape", ()):
            self.low = self.high = self.low_recorded = self.high_recorded = 0
        if not isinstance(self.low, (int, float)) or not isinstance(self.high, (int, float)):
            raise CompareException(
                CompareException.INVALID_PARAM_ERROR,
                f"Data info Min: {self.low} , Max: {self.high}, info type must be int or float.",
            )


def random_tensor(info: Mapping[str, Any], generator: torch.Generator) -> torch.Tensor:
    """A tensor as the description says; ``info`` has ``dtype``, ``shape``, ``Min`` and ``Max``."""
    extremes = Extremes(info)
    name = str(info.get("dtype"))
    shape = tuple(info.get("shape", ()))
    if name == "torch.bool":
        return _random_bool(shape, extremes, generator)
    if name in FLOATS:
        return _random_float(shape, FLOATS[name], extremes, generator)
    if "int" in name or "long" in name:
        dtype = dtype_named(name)
        low, high = int(extremes.low), int(extremes.high)
        drawn = torch.randint(low, high + 1, shape, dtype=dtype, generator=generator)
        return _with_extremes(drawn, extremes, low, high)
    logger.error(f"Dtype is not supported: {name}")
    raise NotImplementedError


def dtype_named(name: str) -> torch.dtype:
    """``torch.float16`` as a value."""
    found = getattr(torch, name.removeprefix("torch."), None) if name.startswith("torch.") else None
    if not isinstance(found, torch.dtype):
        raise TypeError(f"{name} is not a dtype of this version of PyTorch")
    return found


def _random_bool(shape: tuple[int, ...], extremes: Extremes, generator: torch.Generator) -> torch.Tensor:
    low, high = sorted((int(extremes.low), int(extremes.high)))
    return torch.randint(low, high + 1, shape, generator=generator) > 0


def _random_float(
    shape: tuple[int, ...], dtype: torch.dtype, extremes: Extremes, generator: torch.Generator
) -> torch.Tensor:
    low, high = float(extremes.low), float(extremes.high)
    if math.isnan(high):
        return torch.full(shape, math.nan, dtype=dtype)
    if extremes.high_recorded and high in (_INF, -_INF):
        # Nothing finite was there.
        full = torch.full(shape, high, dtype=dtype)
        if full.dim() == 0:
            return torch.full(shape, low, dtype=dtype)
        full[-1] = low
        return full
    limits = torch.finfo(dtype)
    top, bottom = _finite(high, limits), _finite(low, limits)
    drawn = torch.rand(shape, dtype=dtype, generator=generator) * (top - bottom) + bottom
    return _with_extremes(drawn, extremes, low, high)


def _finite(value: float, limits: torch.finfo) -> float:
    if value == _INF:
        return float(limits.max)
    return float(limits.min) if value == -_INF else value


def _with_extremes(drawn: torch.Tensor, extremes: Extremes, low: float, high: float) -> torch.Tensor:
    """Puts the extremes at the ends."""
    if drawn.numel() == 0:
        return drawn
    flat = drawn.reshape(-1)
    recorded_low, recorded_high = extremes.low_recorded, extremes.high_recorded
    if isinstance(recorded_high, float) and math.isnan(recorded_high):
        first = [math.nan] if flat.numel() <= 2 else [low, math.nan]
        for position, value in enumerate(first):
            flat[position] = value
        flat[-1] = high
        return drawn
    flat[0] = low
    flat[-1] = recorded_high if recorded_high in (_INF, -_INF) else high
    if recorded_low in (_INF, -_INF):
        flat[0] = recorded_low
    return drawn
