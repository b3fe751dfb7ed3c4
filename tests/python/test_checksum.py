"""Checksums against zlib and hashlib over the bytes numpy sees."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import numpy as np
import pytest
import torch

from msprobe import _native
from msprobe.core.tensor import checksum, describe
from tests.python.samples import (
    FLOAT8,
    NUMPY_DTYPES,
    NUMPY_LAYOUTS,
    SHAPE,
    TORCH_DTYPES,
    TORCH_LAYOUTS,
    kinds_of,
    numpy_bytes,
    numpy_values,
    torch_bytes,
    torch_values,
)

# numpy cannot hold these: their checksum is that of the float32 they are converted to.
WIDENED = ["bfloat16", *FLOAT8]


def crc(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


def md5(tensor: Any) -> str:
    return _native.md5(describe(tensor)).hex()


@pytest.mark.parametrize("layout", NUMPY_LAYOUTS)
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy(dtype: str, layout: str) -> None:
    for kind in kinds_of(dtype):
        array = NUMPY_LAYOUTS[layout](numpy_values(dtype, kind).reshape(SHAPE))
        data = numpy_bytes(array)
        assert checksum(array) == crc(data)
        assert md5(array) == hashlib.md5(data).hexdigest()


@pytest.mark.parametrize("layout", TORCH_LAYOUTS)
@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_torch(dtype: str, layout: str) -> None:
    for kind in kinds_of(dtype):
        tensor = TORCH_LAYOUTS[layout](torch_values(dtype, kind).reshape(SHAPE))
        hashed = tensor.float() if dtype in WIDENED else tensor
        assert checksum(tensor) == crc(torch_bytes(hashed))
        assert md5(tensor) == hashlib.md5(torch_bytes(tensor)).hexdigest()


def test_known_digests() -> None:
    array = np.frombuffer(b"123456789", np.uint8)
    assert checksum(array) == "cbf43926"
    assert md5(array) == "25f9e794323b453885f5181f1b624d0b"


def test_always_eight_digits() -> None:
    digests = [checksum(np.arange(n)) for n in range(200)]
    assert {len(digest) for digest in digests} == {8}
    assert any(digest.startswith("0") for digest in digests)


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_empty(dtype: str) -> None:
    for shape in [(0,), (3, 0, 2)]:
        tensor = torch.empty(shape, dtype=getattr(torch, dtype))
        assert checksum(tensor) == "00000000"
        assert md5(tensor) == hashlib.md5().hexdigest()


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced"])
def test_large(dtype: str, layout: str) -> None:
    base = torch_values(dtype, "normal", 1_200_000).reshape(1200, 1000)
    tensor = {"contiguous": base, "transposed": base.t(), "sliced": base[::2, 1:]}[layout]
    hashed = tensor.float() if dtype in WIDENED else tensor
    assert checksum(tensor) == crc(torch_bytes(hashed))
    assert md5(tensor) == hashlib.md5(torch_bytes(tensor)).hexdigest()


@pytest.mark.parametrize("count", [1, 100, 2049, 1_200_000])
def test_hash128_is_of_the_values_not_of_the_layout(count: int) -> None:
    array = numpy_values("float32", "normal", count)
    hashed = _native.hash128(describe(array))
    assert _native.hash128(describe(np.repeat(array, 2)[::2])) == hashed
    assert _native.hash128(describe(array[::-1].copy()[::-1])) == hashed
    assert _native.hash128(describe(array.astype(">f4"))) == hashed
    for place in {0, count // 2, count - 1}:
        changed = array.copy()
        changed[place] += 1
        assert _native.hash128(describe(changed)) != hashed
