"""Tensors saved from inside a network, also a compiled one: MindSpore's own operators write them.

Static graphs have these operators on Ascend only; in PyNative mode they work everywhere.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import ops


def _path(save_dir: str, name: str) -> str:
    """Where a tensor goes; MindSpore fills in step and rank."""
    return f"{save_dir}/{{step}}/{{rank}}/{name}"


def _plain(tensor: Any) -> Any:
    return ops.cast(tensor, ms.float32) if tensor.dtype == ms.bfloat16 else tensor


def save(save_dir: str, name: str, data: Any) -> None:
    """Saves a tensor, or those in lists, tuples and dicts, as ``save_dir/step0/rank0/name_float32_0.npy``."""
    if data is None:
        return
    if isinstance(data, ms.Tensor):
        ops.TensorDump()(_path(save_dir, name), _plain(data))
    elif isinstance(data, (list, tuple)):
        for index, item in enumerate(data):
            save(save_dir, f"{name}.{index}", item)
    elif isinstance(data, dict):
        for key, item in data.items():
            save(save_dir, f"{name}.{key}", item)
    else:
        raise TypeError(f"save takes a Tensor, list, tuple or dict, not a {type(data).__name__}")


def save_grad(save_dir: str, name: str, data: Any) -> Any:
    """Has the gradient of a tensor saved. Use what is returned in place of the tensor."""
    if not isinstance(data, ms.Tensor):
        raise TypeError(f"save_grad takes a Tensor, not a {type(data).__name__}")

    def keep(gradient: Any) -> Any:
        ops.TensorDump()(_path(save_dir, f"{name}_grad"), _plain(gradient))
        return gradient

    return ops.InsertGradientOf(keep)(data)
