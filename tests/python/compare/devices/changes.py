"""What faults of this corpus do, beside those of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ..faults import inject
from ..faults.inject import Change, Injection, aten
from ..faults.models import Batch


def rolled(dim: int) -> Change:
    return lambda y: aten.roll.default(y, [3], [dim])


def swapped_heads() -> Change:
    order = torch.tensor([1, 0, 2, 3])
    return lambda y: aten.index_select.default(y, 1, order)


def nothing_left(y: torch.Tensor) -> torch.Tensor:
    return aten.zeros_like.default(y)


def stale(path: str) -> Injection:
    """The last entries of a layer's cache are those of earlier tokens."""

    def make(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            cache = kwargs["past_key_values"].layers[module.layer_idx]
            if cache.get_seq_length():
                cache.keys, cache.values = _behind(cache.keys), _behind(cache.values)
            return original(*args, **kwargs)

        return forward

    return inject.forward_of(path, make)


def _behind(x: torch.Tensor) -> torch.Tensor:
    size = x.shape[-2]
    kept = aten.slice.Tensor(x, -2, 0, size - 3)
    return aten.cat.default([kept, aten.slice.Tensor(x, -2, 0, 3)], -2)


def other_positions(path: str, which: int, change: Change) -> Injection:
    """A module is given other positions than those that are recorded; ``which`` argument they are."""

    def make(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            if "position_ids" in kwargs:
                kwargs["position_ids"] = change(kwargs["position_ids"])
            else:
                args = tuple(change(x) if i == which else x for i, x in enumerate(args))
            return original(*args, **kwargs)

        return forward

    return inject.forward_of(path, make)


def restarted(ids: torch.Tensor) -> torch.Tensor:
    """Positions start again after half of the tokens."""
    return aten.remainder.Scalar(ids, 8)


def shifted_patches(path: str) -> Injection:
    """Patches get the position of their neighbour."""

    def make(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            positions = module.position_embeddings
            shift = aten.sub.Tensor(aten.roll.default(positions, [1], [1]), positions)
            return aten.add.Tensor(original(*args, **kwargs), shift)

        return forward

    return inject.forward_of(path, make)


def other_epsilon(path: str, value: float) -> Injection:
    @contextmanager
    def change(model: nn.Module, batch: Batch) -> Iterator[None]:
        module = model.get_submodule(path)
        name = "variance_epsilon" if hasattr(module, "variance_epsilon") else "eps"
        with inject.setting(path, **{name: value})(model, batch):
            yield

    return change
