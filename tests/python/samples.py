"""Tensors of every dtype, layout and kind of value, for the tests to share."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import torch

FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
SIGNED = ["int8", "int16", "int32", "int64"]
INTEGERS = UNSIGNED + SIGNED
FLOATS = ["float16", "bfloat16", "float32", "float64", *FLOAT8]
COMPLEX = ["complex64", "complex128"]
TORCH_DTYPES = ["bool", *INTEGERS, *FLOATS, *COMPLEX]
NUMPY_DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64", *COMPLEX]

# What can stand in a tensor besides ordinary numbers.
FLOAT_KINDS = ["normal", "nan", "pos_inf", "neg_inf", "both_inf", "zero", "large", "tiny"]
PLAIN_KINDS = ["normal", "zero", "large"]

SHAPE = (6, 10)
COUNT = 60

# torch has no negative strides; numpy does.
TORCH_LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda t: t,
    "offset": lambda t: t[3],
    "transposed": lambda t: t.t(),
    "sliced": lambda t: t[1::2, ::3],
    "expanded": lambda t: t[:, 2:3].expand(6, 7),
    "permuted": lambda t: t.reshape(2, 3, 10).permute(2, 0, 1),
    "overlapping": lambda t: t.as_strided((4, 5), (3, 2), 7),
    "zero_d": lambda t: t[2, 3],
    "empty": lambda t: t[:, :0],
}

NUMPY_LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda a: a,
    "fortran": np.asfortranarray,
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1],
    "reversed_both": lambda a: a[::-2, ::-3],
    "sliced": lambda a: a[1::2, ::3],
    "broadcast": lambda a: np.broadcast_to(a[:, 2:3], (6, 7)),
    "big_endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "big_endian_strided": lambda a: a.astype(a.dtype.newbyteorder(">"))[::-1, ::2],
    "unaligned": lambda a: unaligned(a),
    "field": lambda a: field(a),
    "read_only": lambda a: read_only(a),
    "zero_d": lambda a: a[2:3, 3].reshape(()),
    "empty": lambda a: a[:, :0],
}


def unaligned(array: Any) -> Any:
    """The same values one byte off."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    moved = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def field(array: Any) -> Any:
    """The same values as a field of records, whose strides are no multiple of the element."""
    records = np.zeros(array.shape, np.dtype([("mark", np.uint8), ("value", array.dtype)]))
    records["value"] = array
    return records["value"]


def read_only(array: Any) -> Any:
    frozen = array.copy()
    frozen.setflags(write=False)
    return frozen


def numpy_values(dtype: str, kind: str, count: int = COUNT, seed: int = 0) -> Any:
    """A flat array of one of numpy's own dtypes."""
    rng = np.random.default_rng([seed, count])
    if dtype == "bool":
        share_true = {"normal": 0.5, "zero": 0.0, "large": 1.0}[kind]
        return rng.random(count) < share_true
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        low, high = {
            "normal": (max(-100, limits.min), 100),
            "zero": (0, 0),
            "large": (limits.min, limits.max),
        }[kind]
        return rng.integers(low, high, count, dtype, endpoint=True)
    if dtype in COMPLEX:
        part = "float32" if dtype == "complex64" else "float64"
        parts = np.stack([_floats(rng, part, kind, count), _floats(rng, part, "normal", count)], axis=-1)
        if kind in ("zero", "large", "tiny"):
            parts[:, 1] = 0
        return parts.astype(part).view(dtype).reshape(count)
    return _floats(rng, dtype, kind, count)


def _floats(rng: Any, dtype: str, kind: str, count: int) -> Any:
    limits = np.finfo(dtype)
    values = rng.standard_normal(count).astype(dtype)
    if kind == "zero":
        values = np.where(rng.random(count) < 0.5, 0.0, -0.0).astype(dtype)
    elif kind == "large":
        values = (rng.uniform(0.5, 1, count) * rng.choice([-1, 1], count)).astype(dtype) * limits.max
    elif kind == "tiny":
        values = (rng.uniform(-1, 1, count).astype(dtype) * limits.tiny).astype(dtype)
    # Every third: whatever the layout picks, some are among it.
    for name, value in [("nan", np.nan), ("pos_inf", np.inf), ("neg_inf", -np.inf)]:
        if kind == name:
            values[::3] = value
    if kind == "both_inf":
        values[::3] = np.inf
        values[1::3] = -np.inf
    return values


def torch_values(dtype: str, kind: str, count: int = COUNT, seed: int = 0) -> Any:
    """A flat tensor of any dtype."""
    if dtype in FLOAT8:
        return _float8(dtype, kind, count, seed)
    if dtype == "bfloat16":
        return torch.from_numpy(numpy_values("float32", kind, count, seed)).to(torch.bfloat16)
    return torch.from_numpy(numpy_values(dtype, kind, count, seed))


def _float8(dtype: str, kind: str, count: int, seed: int) -> Any:
    """Picked among the codes that fit the kind; formats without infinities have ordinary values instead."""
    rng = np.random.default_rng([seed, count])
    codes: Any = np.arange(256, dtype=np.uint8)
    values = torch.from_numpy(codes).view(getattr(torch, dtype)).float().numpy()
    finite = codes[np.isfinite(values)]
    normal = codes[np.isfinite(values) & (abs(values) < 8)]
    wanted = {
        "zero": codes[values == 0],
        "large": codes[abs(values) >= abs(values[finite]).max() / 2],
        "tiny": codes[abs(values) < 0.1],
        "nan": codes[np.isnan(values)],
        "pos_inf": codes[values == np.inf],
        "neg_inf": codes[values == -np.inf],
        "both_inf": codes[np.isinf(values)],
    }.get(kind, normal)
    picked = rng.choice(normal, count)
    if kind in ("zero", "large", "tiny"):
        picked = rng.choice(np.intersect1d(wanted, finite), count)
    elif wanted.size:
        picked[::3] = rng.choice(wanted, picked[::3].size)
    return torch.from_numpy(picked).view(getattr(torch, dtype))


def kinds_of(dtype: str) -> list[str]:
    return FLOAT_KINDS if dtype in FLOATS or dtype in COMPLEX else PLAIN_KINDS


def torch_bytes(tensor: Any) -> bytes:
    """The row-major bytes of a tensor as they are."""
    flat = tensor.detach().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


def numpy_bytes(array: Any) -> bytes:
    """The row-major bytes of an array, little-endian."""
    return bytes(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
