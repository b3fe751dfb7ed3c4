"""The arguments of a recorded call, made again: of the tensors a dump kept, or of what it tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, NamedTuple

import torch

from msprobe import _native
from msprobe.pytorch.precheck.random_data import dtype_named, random_tensor
from msprobe.pytorch.precheck.tree import map_tensors

MAX_DEPTH = 10
_TENSORS = {"torch.Tensor", "torch.nn.parameter.Parameter"}
_NUMPY = {
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(f"float{bits}" for bits in (16, 32, 64, 128)),
    *(f"complex{bits}" for bits in (64, 128, 256)),
    *("bool_", "string_", "bytes_", "unicode_"),
}
_COUNTED_AS_FLOATS = {"torch.int8", "torch.int32", "torch.int64"}
_LONG_INDICES, _FLOATING_COUNTS = "cross_entropy", "histc"
_ROUNDED_TO_HF32 = {"conv1d", "conv2d"}
_COMPRESSED_MASK = 2048
_SPARSE_MODES_WITH_COMPRESSED_MASK = (2, 3, 4)


class Device(NamedTuple):
    """An argument that names a device; each side puts its own there."""

    description: Mapping[str, Any]


class Inputs(NamedTuple):
    """What a function is called with. Tensors that want a gradient are leaves with ``requires_grad``."""

    args: list[Any]
    kwargs: dict[str, Any]


class InputMaker:
    """Makes the values of one API in the order in which they stand."""

    def __init__(
        self, name: str, seed: int, data_dir: Path | None = None, needs_gradients: bool = True
    ) -> None:
        self._name = name
        self._data_dir = data_dir
        self._needs_gradients = needs_gradients
        self._generator = torch.Generator().manual_seed(seed)

    def inputs(self, forward: Mapping[str, Any]) -> Inputs:
        """Arguments of the call."""
        described = list(forward.get("input_args") or [])
        kwargs = dict(forward["input_kwargs"])
        if self._name == "npu_fusion_attention":
            kwargs = self._with_compressed_mask(kwargs)
        args = [self._value(self._adjusted(info, place), 0) for place, info in enumerate(described)]
        return Inputs(args, {key: self._keyword(info) for key, info in kwargs.items()})

    def gradient(self, backward: Mapping[str, Any]) -> torch.Tensor:
        """The gradient of the output."""
        made = self._value(backward["input"][0], 0)
        if not isinstance(made, torch.Tensor):
            raise TypeError(
                f"the gradient of the output is recorded as {type(made).__name__}, not as a tensor"
            )
        return made.detach()

    def value(self, info: Any) -> Any:
        """One described value."""
        return self._value(info, 0)

    def _adjusted(self, info: Any, place: int) -> Any:
        """What the name of an API asks for before a value is drawn."""
        if not isinstance(info, dict):
            return info
        low = info.get("Min")
        if self._name == _LONG_INDICES and place == 1 and isinstance(low, (int, float)) and low <= 0:
            # The index that is ignored is drawn as any other would be.
            return {**info, "Min": 0}
        if self._name == _FLOATING_COUNTS and place == 0 and info.get("dtype") in _COUNTED_AS_FLOATS:
            return {**info, "dtype": "torch.float32"}
        return info

    def _value(self, info: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError(f"arguments are nested more than {MAX_DEPTH} deep")
        if info is None:
            return None
        if isinstance(info, (list, tuple)):
            return [self._value(item, depth + 1) for item in info]
        if not isinstance(info, dict):
            raise NotImplementedError
        return self._described(info)

    def _described(self, info: Mapping[str, Any]) -> Any:
        kind = str(info.get("type"))
        if kind in _TENSORS:
            return self._tensor(info)
        if kind.startswith("numpy."):
            return _numpy_scalar(kind, info.get("value"))
        build = _BUILT.get(kind)
        return build(info) if build is not None else info.get("value")

    def _keyword(self, info: Any) -> Any:
        if isinstance(info, (list, tuple)):
            return [map_tensors(self._keyword(item), torch.Tensor.detach) for item in info]
        if not isinstance(info, dict):
            return info
        return self._described(info)

    def _tensor(self, info: Mapping[str, Any]) -> torch.Tensor:
        file = info.get("datapath") or info.get("data_name")
        if file is not None and self._data_dir is not None:
            tensor = read_recorded(self._data_dir, str(file))
        else:
            tensor = random_tensor(info, self._generator)
        tensor = self._converted(tensor)
        if self._needs_gradients and info.get("requires_grad") and tensor.is_floating_point():
            tensor.requires_grad_(True)
        return tensor

    def _converted(self, tensor: torch.Tensor) -> torch.Tensor:
        """What the name of an API asks for after a value is there."""
        if self._name == _LONG_INDICES and tensor.dtype is torch.int32:
            return tensor.long()
        if self._name == _FLOATING_COUNTS and tensor.dtype is torch.int64:
            return tensor.float()
        if self._name in _ROUNDED_TO_HF32 and tensor.dtype is torch.float32:
            return rounded_to_hf32(tensor)
        return tensor

    def _with_compressed_mask(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """In some modes the mask is one triangle of fixed size, which cannot be drawn."""
        mask, mode = kwargs.get("atten_mask"), kwargs.get("sparse_mode")
        chosen = mode.get("value") if isinstance(mode, dict) else None
        if (
            isinstance(mask, dict)
            and chosen in _SPARSE_MODES_WITH_COMPRESSED_MASK
            and (self._data_dir is None or not (mask.get("datapath") or mask.get("data_name")))
        ):
            return {**kwargs, "atten_mask": {"type": "triangle"}}
        return kwargs


def read_recorded(data_dir: Path, name: str) -> torch.Tensor:
    """A tensor of the dump."""
    path = (data_dir / name).resolve()
    if not path.is_relative_to(data_dir.resolve()):
        raise ValueError(f"The file: {path} does not lie in {data_dir}.")
    if path.suffix not in (".pt", ".npy"):
        raise ValueError(f"The file: {path} is not a pt or numpy file.")
    names = _native.tensor_names(path)
    if len(names) != 1:
        raise ValueError(f"The file: {path} holds {len(names)} tensors, one is expected.")
    dtype, shape, data = _native.read_tensor(path, names[0])
    if not data:
        return torch.empty(shape, dtype=dtype_named(f"torch.{dtype}"))
    return torch.frombuffer(bytearray(data), dtype=dtype_named(f"torch.{dtype}")).reshape(shape)


def rounded_to_hf32(tensor: torch.Tensor) -> torch.Tensor:
    """With the mantissa a matrix unit keeps of it: 11 bits."""
    return ((((tensor.contiguous().view(torch.int32) >> 11) + 1) >> 1) << 12).view(torch.float32)


def _numpy_scalar(kind: str, value: Any) -> Any:
    import numpy

    name = kind.removeprefix("numpy.")
    scalar = getattr(numpy, name, None) if name in _NUMPY else None
    if scalar is None:
        raise ValueError(f"{kind} is not supported now")
    return scalar(value)


def _dtype(info: Mapping[str, Any]) -> Any:
    name = str(info.get("value"))
    if name.startswith("numpy."):
        import numpy

        return numpy.dtype(name.removeprefix("numpy."))
    return dtype_named(name)


def _constant_of_torch(info: Mapping[str, Any]) -> Any:
    """``torch.channels_last`` and such, by name."""
    name = str(info.get("value"))
    found = getattr(torch, name.removeprefix("torch."), None)
    return found if isinstance(found, (torch.memory_format, torch.layout)) else info.get("value")


_BUILT: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "torch.Size": lambda info: torch.Size(info["value"]),
    "slice": lambda info: slice(*info["value"]),
    "ellipsis": lambda info: ...,
    "torch.dtype": _dtype,
    "torch.device": Device,
    "torch.memory_format": _constant_of_torch,
    "torch.layout": _constant_of_torch,
    "triangle": lambda info: torch.ones(_COMPRESSED_MASK, _COMPRESSED_MASK).triu(1).bool(),
}
