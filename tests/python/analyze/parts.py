"""Modules and values the cases are made of: tiny, and finite unless a case breaks them."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn

WIDTH = 4


class Apply(nn.Module):  # type: ignore[misc]
    """A function as a module. A lambda, so that the function is looked up when it is called."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def linear(scale: float = 1.0) -> Any:
    """A layer that gives back its input, scaled."""
    layer = nn.Linear(WIDTH, WIDTH)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(WIDTH) * scale)
        layer.bias.zero_()
    return layer


def between(function: Callable[[Any], Any]) -> Any:
    """A function between two layers: modules 0, 1 and 2."""
    return nn.Sequential(linear(), Apply(function), linear())


def ramp(*, sign: float = 1.0) -> Any:
    """Two rows of 1, 2, 3 …, or of their negatives."""
    return sign * torch.arange(1.0, 2 * WIDTH + 1).reshape(2, WIDTH)


def bad_on(rank: int, own: int) -> Any:
    """Negative numbers on one rank, positive ones elsewhere: a logarithm tells them apart."""
    return ramp(sign=-1.0 if own == rank else 1.0)
