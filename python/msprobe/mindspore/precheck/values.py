"""Arguments of a recorded call, as numpy arrays and names of dtypes that both frameworks can be given."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from msprobe.core.common.exceptions import ApiAccuracyCheckerException
from msprobe.mindspore.precheck.errors import missing, unsupported

SEED = 42
"""Of each tensor: those of equal shape and range have equal elements, as the recorded cases show."""

_PLAIN = {"bool", "int", "float", "str"}
_ARRAYS = {
    "Int8": np.int8,
    "UInt8": np.uint8,
    "Int16": np.int16,
    "UInt16": np.uint16,
    "Int32": np.int32,
    "UInt32": np.uint32,
    "Int64": np.int64,
    "UInt64": np.uint64,
    "Float16": np.float16,
    "Float32": np.float32,
    "Float64": np.float64,
    "Bool": np.bool_,
    # numpy has none; float32 holds each of its values.
    "BFloat16": np.float32,
}
TORCH_NAMES = {
    "Int8": "int8",
    "UInt8": "uint8",
    "Int16": "int16",
    "Int32": "int32",
    "Int64": "int64",
    "Float16": "float16",
    "Float32": "float32",
    "Float64": "float64",
    "Bool": "bool",
    "BFloat16": "bfloat16",
}
MINDSPORE_NAMES = {
    name: {"Bool": "bool_", "BFloat16": "bfloat16"}.get(name, name.lower()) for name in _ARRAYS
}


class Array(NamedTuple):
    """A tensor of neither framework."""

    elements: Any
    dtype: str


class DtypeName(NamedTuple):
    """A dtype given as an argument."""

    name: str


def make_value(info: Any, data_dir: Path | None) -> Any:
    """A value as its record describes it. Tensors are read where the dump has them, and drawn otherwise."""
    if info is None:
        return None
    if isinstance(info, (list, tuple)):
        return tuple(make_value(item, data_dir) for item in info)
    if not isinstance(info, dict):
        raise missing("input is not a dict")
    kind = info.get("type")
    if kind == "mindspore.Tensor":
        return _tensor(info, data_dir)
    if "value" not in info:
        raise missing("value field in api_info.json is missing")
    value = info["value"]
    if kind in _PLAIN:
        return value
    if kind == "slice":
        return slice(*value)
    if kind == "mindspore.dtype":
        return DtypeName(_known(str(value)))
    raise unsupported(kind)


def _known(dtype: str) -> str:
    if dtype not in _ARRAYS:
        raise unsupported(dtype)
    return dtype


def _tensor(info: Mapping[str, Any], data_dir: Path | None) -> Array:
    dtype = _known(str(_field(info, "dtype")))
    shape = tuple(_field(info, "shape"))
    if data_dir is not None:
        return Array(_read(data_dir, str(_field(info, "data_name"))), dtype)
    high, low = _field(info, "Max"), _field(info, "Min")
    return Array(_drawn(dtype, shape, low, high), dtype)


def _field(info: Mapping[str, Any], name: str) -> Any:
    value = info.get(name)
    if value is None:
        raise missing(f"{name} field in api_info.json is missing")
    return value


def _read(data_dir: Path, name: str) -> Any:
    path = (data_dir / name).resolve()
    if not path.is_relative_to(data_dir.resolve()):
        raise ApiAccuracyCheckerException(
            ApiAccuracyCheckerException.WrongValue, f"{path} does not lie in {data_dir}"
        )
    return np.load(path, allow_pickle=False)


def _drawn(dtype: str, shape: tuple[int, ...], low: Any, high: Any) -> Any:
    generator = np.random.RandomState(SEED)
    if dtype == "Bool":
        return generator.rand(*shape) > 0.5 if shape else np.bool_(generator.rand() > 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        drawn = generator.uniform(_bounded(low), _bounded(high), shape)
        if dtype == "BFloat16":
            return _rounded_to_bfloat16(np.asarray(drawn, np.float64))
        return np.asarray(drawn).astype(_ARRAYS[dtype])


def _bounded(value: Any) -> float:
    """An infinity becomes the largest double, which is an infinity again in narrower dtypes."""
    if not isinstance(value, (int, float)):
        raise missing("Max and Min have to be numbers")
    if math.isinf(value):
        return math.copysign(sys.float_info.max, value)
    return float(value)


def _rounded_to_bfloat16(drawn: Any) -> Any:
    bits = np.ascontiguousarray(drawn, np.float32).view(np.uint32)
    odd = (bits >> 16) & 1
    return (((bits + 0x7FFF + odd) >> 16) << 16).astype(np.uint32).view(np.float32).reshape(drawn.shape)


def map_arrays(value: Any, convert: Any) -> Any:
    """The tree with arrays and dtypes as a framework has them."""
    if isinstance(value, (Array, DtypeName)):
        return convert(value)
    if isinstance(value, tuple):
        return tuple(map_arrays(item, convert) for item in value)
    return value
