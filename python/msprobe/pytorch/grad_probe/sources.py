"""Where the gradient of a parameter is: on itself, in a shard, or in a flat partition of an optimizer.

A process that holds a part of a gradient records that part, under a name that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch


class Gradient(NamedTuple):
    """A gradient as this process has it."""

    suffix: str
    """What the name of the parameter is followed by, if this is a part of its gradient."""
    tensor: torch.Tensor


class Partitions:
    """The parameters of an optimizer, by the memory they lie in.

    DeepSpeed's ZeRO optimizers hand flat float32 partitions to the optimizer of the script; each parameter of
    the model knows the piece of a partition that stands for it on this rank.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._by_storage: dict[int, torch.Tensor] | None = None

    def has(self, parameter: torch.Tensor) -> bool:
        return self._locate(parameter) is not None

    def gradient(self, parameter: torch.Tensor) -> torch.Tensor | None:
        """The gradient of the piece."""
        located = self._locate(parameter)
        if located is None:
            return None
        partition, start, numel = located
        return None if partition.grad is None else partition.grad.reshape(-1)[start : start + numel]

    def _locate(self, parameter: torch.Tensor) -> tuple[torch.Tensor, int, int] | None:
        mapping = getattr(parameter, "_hp_mapping", None)
        fragment = getattr(mapping, "hp_fragment", None)
        if not isinstance(fragment, torch.Tensor):
            return None
        if self._by_storage is None:
            self._by_storage = {
                item.untyped_storage().data_ptr(): item for item in parameters_of(self._optimizer)
            }
        partition = self._by_storage.get(fragment.untyped_storage().data_ptr())
        if partition is None:
            return None
        start = fragment.storage_offset() - partition.storage_offset()
        if start < 0 or start + fragment.numel() > partition.numel():
            return None
        return partition, start, fragment.numel()


def parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """What an optimizer changes."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if isinstance(parameter, torch.Tensor):
                yield parameter


def is_partitioned(parameter: torch.Tensor) -> bool:
    """Whether a ZeRO optimizer keeps the gradient, on this rank or on another one."""
    return hasattr(parameter, "_hp_mapping")


def gradient_of(parameter: torch.Tensor, partitions: Partitions) -> Gradient | None:
    """The gradient as the optimizer is about to use it; ``None`` if there is none."""
    if hasattr(parameter, "main_grad"):
        # Megatron-LM and its relatives accumulate there, in float32.
        whole = parameter.main_grad
    elif partitions.has(parameter):
        part = partitions.gradient(parameter)
        if part is None:
            return None
        if part.numel() == parameter.numel():
            return Gradient("", _on_host(part.reshape(parameter.shape)))
        return Gradient(_partition_suffix(parameter), _on_host(part))
    else:
        whole = parameter.grad
    if whole is None:
        return None
    suffix = ""
    if hasattr(whole, "to_local") and hasattr(whole, "placements"):
        suffix = _placement_suffix(whole)
        whole = whole.to_local()
    return Gradient(suffix, _on_host(whole))


def _partition_suffix(parameter: torch.Tensor) -> str:
    group = getattr(parameter, "_dp_group", None)
    index = torch.distributed.get_rank(group=group)
    return f".shard{index}of{torch.distributed.get_world_size(group=group)}"


def _placement_suffix(tensor: Any) -> str:
    """Which part of how many a DTensor has here. Dimensions of a mesh are counted like those of an array."""
    mesh = tensor.device_mesh
    coordinate = mesh.get_coordinate()
    suffix = ""
    # Strided shards are no subclass of shards in every version; the names of the classes have stayed.
    for word, what in (("Shard", "shard"), ("Partial", "partial")):
        index, count = 0, 1
        for dimension, placement in enumerate(tensor.placements):
            size = mesh.size(dimension)
            if word in type(placement).__name__ and size > 1:
                index = index * size + (0 if coordinate is None else coordinate[dimension])
                count *= size
        if count > 1:
            suffix += f".{what}{index}of{count}"
    return suffix


def _on_host(tensor: Any) -> torch.Tensor:
    """The elements in host memory, laid out plainly."""
    if hasattr(tensor, "trigger_wait"):
        # The result of a collective that may still be under way.
        tensor = tensor.wait()
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if not tensor.is_cpu:
        tensor = tensor.cpu()
    plain: torch.Tensor = tensor.resolve_conj().resolve_neg()
    return plain
