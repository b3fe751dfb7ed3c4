"""Arguments and results as trees of lists: mapped, and gone through leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import torch


def leaves(value: Any) -> Iterator[Any]:
    """What lies in lists and tuples, in order. ``torch.Size`` is a leaf."""
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors among the leaves."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))


def map_tensors(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same tree with each tensor replaced."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, (list, tuple)):
        return [map_tensors(item, change) for item in value]
    return value
