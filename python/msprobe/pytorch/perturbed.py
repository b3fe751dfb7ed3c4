"""A run that shows how much is noise: the same model with last bits of its numbers changed at random.

Collect such a run beside the one to measure against, and give it to ``msprobe compare … --noise``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

# Integers of the size of a float, whose neighbours are the bits of the float's neighbours.
_BITS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


@contextmanager
def perturbed(model: nn.Module, *, seed: int = 0) -> Iterator[nn.Module]:
    """Inside the block, parameters of the model and float tensors it is called with have other last bits.

    Each element is moved to a neighbour, up or down, or stays: by chance, but the same for the same seed.
    When the block ends, the parameters are what they were before it: what was trained inside is not to be
    used. Random numbers of the training are not touched. Zeros, and what is not finite, stay as they are.
    """
    generator = torch.Generator().manual_seed(seed)
    parameters = [each for each in model.parameters() if each.dtype in _BITS]
    before = [each.detach().clone() for each in parameters]

    def perturb_inputs(
        _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def change(value: Any) -> Any:
            is_float = isinstance(value, torch.Tensor) and value.dtype in _BITS
            return value + (_moved(value.detach(), generator) - value.detach()) if is_float else value

        changed: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_map(change, (args, kwargs))
        return changed

    handle = model.register_forward_pre_hook(perturb_inputs, with_kwargs=True)
    try:
        with torch.no_grad():
            for each in parameters:
                each.copy_(_moved(each, generator))
        yield model
    finally:
        handle.remove()
        with torch.no_grad():
            for each, values in zip(parameters, before):
                each.copy_(values)


def _moved(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Every element moved to a neighbour or left, by chance."""
    values = values.contiguous()
    steps = torch.randint(-1, 2, values.shape, generator=generator)
    # The largest number has no neighbour above.
    stays = ~torch.isfinite(values) | (values == 0) | (values.abs() == torch.finfo(values.dtype).max)
    steps = steps.to(values.device, _BITS[values.dtype]).masked_fill(stays, 0)
    return (values.view(_BITS[values.dtype]) + steps).view(values.dtype)
