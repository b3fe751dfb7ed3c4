"""Every code of every small float, decoded as torch and ml_dtypes decode it."""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from msprobe.core.tensor import checksum, pair_metrics, statistics
from tests.python.samples import FLOAT8

WIDE = ["float16", "bfloat16"]
ML_DTYPES = ["bfloat16", *FLOAT8]


def torch_codes(dtype: str) -> Any:
    codes: Any = np.arange(65536, dtype=np.uint16) if dtype in WIDE else np.arange(256, dtype=np.uint8)
    return torch.from_numpy(codes).view(getattr(torch, dtype))


def numpy_codes(dtype: str) -> Any:
    codes: Any = np.arange(65536, dtype=np.uint16) if dtype in WIDE else np.arange(256, dtype=np.uint8)
    return codes.view("float16" if dtype == "float16" else getattr(ml_dtypes, dtype))


def check_decoded(codes: Any, wide: Any, nan: int, pos_inf: int, neg_inf: int) -> None:
    """`wide` is what another library makes of `codes`."""
    for target, golden in [(codes, wide), (wide, codes)]:
        metrics = pair_metrics(target, golden)
        assert metrics is not None
        assert metrics["count"] == len(codes)
        assert metrics["equal_count"] == len(codes) - nan
        assert metrics["nan_positions_agree"]
        assert metrics["inf_positions_agree"]
        assert metrics["max_abs_error"] == 0
        for side in ("target", "golden"):
            counts = [metrics[f"{side}_{kind}"] for kind in ("nan", "pos_inf", "neg_inf")]
            assert counts == [nan, pos_inf, neg_inf]


@pytest.mark.parametrize("dtype", [*WIDE, *FLOAT8])
def test_every_code_as_torch_decodes_it(dtype: str) -> None:
    codes = torch_codes(dtype)
    wide = codes.float()
    nan, pos_inf, neg_inf = (int(mask.sum()) for mask in (wide.isnan(), wide == math.inf, wide == -math.inf))
    check_decoded(codes, wide, nan, pos_inf, neg_inf)
    check_decoded(codes, codes.double(), nan, pos_inf, neg_inf)
    assert nan > 0


@pytest.mark.parametrize("dtype", ["float16", *ML_DTYPES])
def test_every_code_as_numpy_decodes_it(dtype: str) -> None:
    codes = numpy_codes(dtype)
    wide = codes.astype(np.float32)
    nan, pos_inf, neg_inf = (int(of(wide).sum()) for of in (np.isnan, np.isposinf, np.isneginf))
    check_decoded(codes, wide, nan, pos_inf, neg_inf)
    metrics = pair_metrics(codes, torch_codes(dtype))
    assert metrics is not None
    assert metrics["equal_count"] == len(codes) - nan


@pytest.mark.parametrize("dtype", [*WIDE, *FLOAT8])
def test_every_code_one_by_one_down_to_the_sign_of_zero(dtype: str) -> None:
    codes = torch_codes(dtype)
    for code, value in zip(codes, codes.double().tolist()):
        ours = statistics(code)["max"]
        if math.isnan(value):
            assert math.isnan(ours)
        else:
            assert struct.pack("<d", ours) == struct.pack("<d", value)


@pytest.mark.parametrize("dtype", ["bfloat16", *FLOAT8])
def test_widened_bits_are_those_of_torch_nans_included(dtype: str) -> None:
    codes = torch_codes(dtype)
    wide = codes.float().numpy()
    assert checksum(codes) == f"{zlib.crc32(wide.tobytes()):08x}"
    if dtype in FLOAT8:
        for index in range(256):
            one = slice(index, index + 1)
            assert checksum(codes[one]) == f"{zlib.crc32(wide[one].tobytes()):08x}", hex(index)


@pytest.mark.parametrize("dtype", [*WIDE, *FLOAT8])
def test_statistics_of_all_codes(dtype: str) -> None:
    codes = torch_codes(dtype)
    wide = codes.double()
    ours = statistics(codes)
    assert ours["nan"] == int(wide.isnan().sum())
    assert ours["pos_inf"] == int((wide == math.inf).sum())
    assert ours["neg_inf"] == int((wide == -math.inf).sum())
    assert ours["zero"] == int((wide == 0).sum())
    assert all(math.isnan(ours[key]) for key in ("max", "min", "mean", "norm"))
