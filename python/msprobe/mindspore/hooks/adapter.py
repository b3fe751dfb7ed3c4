"""What Rust asks about MindSpore: kinds of values, elements of tensors, stacks, where to complain."""

from __future__ import annotations

import contextlib
from types import CodeType, FrameType
from typing import Any, Callable

import mindspore as ms
import numpy as np
from mindspore._c_expression import TensorPy, typing

from msprobe.core.collection.frames import frames_from, texts_of
from msprobe.core.collection.telling import (
    Told,
    group_id,
    is_numpy_scalar,
    plain_kind,
    told_numpy_scalar,
    told_slice,
)
from msprobe.core.collection.window import Window
from msprobe.core.framework import DeviceSketch, Form, Framework, Kind, Special
from msprobe.mindspore.framework import MINDSPORE
from msprobe.mindspore.hooks.executor import sync

# The functions themselves: attributes may hold wrappers while a window is open.
_asnumpy: Callable[[Any], Any] = ms.Tensor.asnumpy
_register_hook: Callable[[Any, Any], Any] = ms.Tensor.register_hook
_BFLOAT16 = ms.bfloat16
_NEWEST = 2**64 - 1


def _never(_: Any = None) -> bool:
    return False


class Adapter(Told):
    """MindSpore's side of a collection, as ``msprobe.core.framework.Adapter`` asks for it.

    Elements are read through arrays of numpy, which wait for the device and copy from it.
    """

    # Nobody watches what is asked of the framework, and gradients are not found by its graph.
    is_neg = is_conj = staticmethod(_never)
    is_grad_enabled = is_mode_enabled = staticmethod(_never)
    unseen = staticmethod(contextlib.nullcontext)
    team = None
    border = None

    def __init__(
        self, window: Window, error_log: Callable[[], str | None], framework: Framework = MINDSPORE
    ) -> None:
        super().__init__(error_log)
        self.framework = framework
        self._inside = window.inside

    @staticmethod
    def data_ptr(array: Any) -> int:
        address: int = array.__array_interface__["data"][0]
        return address

    @staticmethod
    def stride(array: Any) -> tuple[int, ...]:
        size = array.itemsize
        return tuple(step // size for step in array.strides)

    def on_host(self, tensor: Any) -> Any:
        """An array of the elements; those of bfloat16, which numpy does not have, as float32."""
        before, self._inside.api = self._inside.api, True
        try:
            return host_array(tensor)
        finally:
            self._inside.api = before

    def register_hook(self, tensor: Any, hook: Callable[[Any], None]) -> Any:
        """Has ``hook`` called with the gradient of a tensor, which stays what it is."""
        inside = self._inside

        def pass_on(gradient: Any) -> Any:
            sync()
            before, inside.api = inside.api, True
            try:
                hook(gradient)
            except Exception as error:
                self.failed("backward_data_collect", "gradient", error)
            finally:
                inside.api = before
            return gradient

        return _register_hook(tensor, pass_on)

    def kind(self, cls: type) -> Kind:
        if issubclass(cls, (ms.Tensor, TensorPy)):
            return Kind.TENSOR
        if issubclass(cls, typing.Type):
            return Kind.RARE
        plain = plain_kind(cls)
        if plain is not None:
            return plain
        return Kind.RARE if cls.__name__ == "P2POp" else Kind.NULL

    def rare(self, value: Any, key: str | None) -> Any:
        """A value as plain dicts, lists and scalars."""
        if value is None:
            return None
        if key == "dtype" or isinstance(value, typing.Type):
            return {"type": "mindspore.dtype", "value": str(value)}
        if isinstance(value, slice):
            return told_slice(value)
        if is_numpy_scalar(type(value)):
            return told_numpy_scalar(value)
        if isinstance(value, (bool, int, float, str)):
            return {"type": type(value).__name__, "value": value}
        if value is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        return _point_to_point(value) if type(value).__name__ == "P2POp" else None

    def special(self, tensor: Any) -> Special:
        return Special(tensor, self.framework.tensor_type, None, [])

    def form(self, tensor: Any, whole: bool) -> Form:
        return Form(None, list(tensor.shape), unmeasured="its elements cannot be read")

    def measure_on_device(self, tensor: Any) -> int | None:
        return None

    def fetch(self) -> list[tuple[float, float, float, float]]:
        return []

    def fetch_sketches(self) -> list[DeviceSketch]:
        return []

    def describe_stack(self, frame: FrameType) -> tuple[list[str], bool]:
        return texts_of(frames_from(frame)), False

    def is_compiled_code(self, code: CodeType) -> bool:
        return False

    def running_node(self) -> int | None:
        """No node is asked for: backward passes are over when that is told."""
        return _NEWEST


def host_array(tensor: Any) -> Any:
    """The elements of a tensor in host memory."""
    if tensor.dtype is _BFLOAT16:
        return _widened(tensor)
    return _asnumpy(tensor)


def _widened(tensor: Any) -> Any:
    """The upper halves of singles are what numbers of bfloat16 are."""
    halves = np.frombuffer(tensor.get_bytes(), np.uint16)
    return (halves.astype(np.uint32) << 16).view(np.float32).reshape(tensor.shape)


def _point_to_point(value: Any) -> dict[str, Any]:
    return {
        "class_type": "mindspore.mint.distributed.P2POp",
        "tensor": value.tensor,
        "op": getattr(value.op, "__name__", str(value.op)),
        "peer": value.peer,
        "tag": value.tag,
        "group_id": _group(value),
    }


def _group(value: Any) -> str | None:
    try:
        ranks = ms.communication.get_process_group_ranks(value.group)
    except Exception:
        return None
    return group_id(list(ranks))
