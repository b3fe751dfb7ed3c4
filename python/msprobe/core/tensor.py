"""Tensors of any framework, measured in place by the Rust core.

Works on PyTorch tensors in host memory and on numpy arrays without importing either: what the object looks
like decides. Nothing is copied.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Union

from msprobe import _native

Path = Union[str, os.PathLike[str]]


class Described(NamedTuple):
    """Where a tensor lies in memory. Keeps its owner alive."""

    address: int
    storage_bytes: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    big_endian: bool
    owner: Any


def describe(tensor: Any) -> Described:
    """Address, dtype, shape and strides of a tensor."""
    if hasattr(tensor, "untyped_storage"):
        return _describe_torch(tensor)
    if hasattr(tensor, "__array_interface__"):
        return _describe_numpy(tensor)
    raise TypeError(f"expected a PyTorch tensor or a numpy array, got {type(tensor).__name__}")


def _describe_torch(tensor: Any) -> Described:
    if tensor.device.type != "cpu":
        raise TypeError(f"the tensor is on {tensor.device}; move it to the CPU first")
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"the tensor's layout is {tensor.layout}; call to_dense() first")
    if tensor.is_conj() or tensor.is_neg():
        raise TypeError("the tensor has a pending conj or neg; call resolve_conj().resolve_neg() first")
    storage = tensor.untyped_storage()
    return Described(
        storage.data_ptr(),
        storage.nbytes(),
        str(tensor.dtype),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        False,
        storage,
    )


def _describe_numpy(array: Any) -> Described:
    # The array itself, or one made from a numpy scalar, whose own interface points at memory already freed.
    array = array.__array__()
    itemsize = array.dtype.itemsize or 1
    if any(stride % itemsize for stride in array.strides):
        array = array.copy()
    strides = tuple(stride // itemsize for stride in array.strides)
    # numpy points at the logical first element; with negative strides memory begins before it.
    reach = [(size - 1) * stride for size, stride in zip(array.shape, strides)] if array.size else []
    before = -sum(step for step in reach if step < 0)
    after = sum(step for step in reach if step > 0)
    return Described(
        array.__array_interface__["data"][0] - before * itemsize,
        (before + after + 1) * itemsize if array.size else 0,
        array.dtype.name,
        tuple(array.shape),
        strides,
        before,
        array.dtype.byteorder == ">",
        array,
    )


def statistics(tensor: Any) -> dict[str, Any]:
    """max, min, mean, norm (as the dump format defines them) and counts of nan, pos_inf, neg_inf, zero."""
    return _native.statistics(describe(tensor))


def checksum(tensor: Any) -> str:
    """The CRC-32 that dumps keep under ``md5``: eight hexadecimal digits."""
    return f"{_native.crc32(describe(tensor)):08x}"


def pair_metrics(target: Any, golden: Any) -> dict[str, Any] | None:
    """Every error metric of two tensors with as many elements; ``None`` if they have none."""
    return _native.compare_pair(describe(target), describe(golden))


def save_npy(path: Path, tensor: Any) -> None:
    """Writes a ``.npy`` file, whole or not at all."""
    _native.write_npy(path, describe(tensor))


def save_pt(path: Path, tensor: Any) -> None:
    """Writes a ``.pt`` file, whole or not at all; a dict of tensors is written as such."""
    if isinstance(tensor, Mapping):
        _native.write_pt_dict(path, [(name, describe(value)) for name, value in tensor.items()])
    else:
        _native.write_pt(path, describe(tensor))
