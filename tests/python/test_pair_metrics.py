"""``pair_metrics`` against plain numpy, written from the definitions of the two comparison tools.

The first family (dump comparison): float64 distances, relative errors in numpy's arithmetic, positions that
are not finite set to zero. The second (key-data comparison), under ``scaled``: all in numpy's arithmetic.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from msprobe.core.tensor import pair_metrics
from tests.python.samples import COMPLEX, INTEGERS, NUMPY_LAYOUTS, SHAPE, numpy_values, torch_values

EPSILON = np.finfo(np.float64).eps
REAL = ["bool", *INTEGERS, "float16", "float32", "float64"]
FLOATS = ["float16", "float32", "float64"]


def oracle(n: Any, b: Any) -> dict[str, Any]:
    """Every metric of a target ``n`` and a golden ``b``, as numpy says."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        n, b = n.reshape(-1), b.reshape(-1)
        return non_finite(n, b) | equality(n, b) | against_golden(n, b) | {"scaled": scaled(n, b)}


def non_finite(n: Any, b: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"count": n.size}
    for side, values in [("target", n), ("golden", b)]:
        values = values.astype(np.float64)
        result[f"{side}_nan"] = np.isnan(values).sum()
        result[f"{side}_pos_inf"] = np.isposinf(values).sum()
        result[f"{side}_neg_inf"] = np.isneginf(values).sum()
    result["nan_positions_agree"] = bool((np.isnan(n) == np.isnan(b)).all())
    result["inf_positions_agree"] = bool((np.isinf(n) == np.isinf(b)).all())
    return result


def equality(n: Any, b: Any) -> dict[str, Any]:
    common = np.result_type(n, b)
    unequal = n.astype(common) != b.astype(common)
    differs = unequal & ~(np.isnan(n) & np.isnan(b))
    return {
        "equal_count": n.size - unequal.sum(),
        "first_mismatch": int(unequal.argmax()) if unequal.any() else None,
        "first_difference": int(differs.argmax()) if differs.any() else None,
    }


def against_golden(n: Any, b: Any) -> dict[str, Any]:
    finite = np.isfinite(n) & np.isfinite(b)
    n, b = np.where(finite, n, n.dtype.type(0)), np.where(finite, b, b.dtype.type(0))
    wide_n, wide_b = n.astype(np.float64), b.astype(np.float64)
    if b.dtype.kind != "f":
        n, b = wide_n, wide_b
    zero = b == 0
    common = np.result_type(n, b)
    shifted_n, shifted_b = n.astype(common), b.astype(common)
    shifted_n[zero] += common.type(EPSILON)
    shifted_b[zero] += common.type(EPSILON)
    relative = abs((shifted_n - shifted_b) / shifted_b)
    norm_n, norm_b = np.linalg.norm(wide_n), np.linalg.norm(wide_b)
    if norm_n <= EPSILON and norm_b <= EPSILON:
        cosine = 1.0
    elif norm_n <= EPSILON or norm_b <= EPSILON:
        cosine = math.nan
    else:
        cosine = wide_n.dot(wide_b) / (norm_n * norm_b)
    return {
        "cosine": cosine,
        "euclidean_distance": np.linalg.norm(wide_n - wide_b),
        "max_abs_error": abs(wide_n - wide_b).max(),
        "max_relative_error": relative.max(),
        "within_thousandth": (relative < 0.001).sum(),
        "within_five_thousandths": (relative < 0.005).sum(),
        "within_hundredth": (relative < 0.01).sum(),
    }


def scaled(a: Any, b: Any) -> dict[str, Any] | None:
    if a.dtype == bool and b.dtype == bool:
        return None
    common = np.result_type(a, b)
    a, b = a.astype(common), b.astype(common)
    distance, larger = abs(a - b), np.maximum(abs(a), abs(b))
    relative = distance / larger
    return {
        "max_abs_error": distance.max(),
        "max_relative_error": np.nan_to_num(relative).max(),
        "within_thousandth": (distance <= 0.001 * larger).sum(),
        "within_hundredth": (distance <= 0.01 * larger).sum(),
    }


# Sums of doubles in another order; everything else has the same bits.
SUMS = {"cosine", "euclidean_distance"}


def check(target: Any, golden: Any, n: Any, b: Any) -> None:
    """The metrics of a pair against those numpy finds for the same values."""
    ours, expected = pair_metrics(target, golden), oracle(n, b)
    assert ours is not None
    assert ours.keys() == expected.keys()
    for key, value in expected.items():
        if key in SUMS:
            assert ours[key] == pytest.approx(value, rel=1e-12, abs=1e-300, nan_ok=True), key
        elif isinstance(value, dict):
            for inner, number in value.items():
                assert same_number(ours[key][inner], number), (key, inner, ours[key][inner], number)
        else:
            assert same_number(ours[key], value), (key, ours[key], value)


def same_number(ours: Any, value: Any) -> bool:
    if ours is None or value is None:
        return ours is value
    return bool(ours == value) or bool(ours != ours and value != value)


def golden_near(values: Any, seed: int) -> Any:
    """The values again, some a little and some a lot different, some equal, some zero."""
    rng = np.random.default_rng(seed)
    near = values.copy()
    if values.dtype.kind == "f":
        factor = 1 + rng.choice([0, 1e-4, 9e-4, 1e-3, 2e-3, 6e-3, 1e-2, 0.5, -2], values.size)
        near = (values * factor).astype(values.dtype)
    elif values.dtype.kind in "iu":
        near = values + rng.integers(0, 3, values.size).astype(values.dtype)
    near[rng.random(values.size) < 0.1] = 0
    return near


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dtype", REAL)
def test_pairs_of_one_dtype(dtype: str, seed: int) -> None:
    count = [1, 2, 7, 16, 33, 100, 2048, 2050, 4999, 9][seed % 10]
    kind = "normal" if seed < 10 else "large"
    n = numpy_values(dtype, kind, count, seed)
    with np.errstate(all="ignore"):
        b = golden_near(n, seed)
    check(n, b, n, b)
    check(n, n.copy(), n, n)
    other = numpy_values(dtype, "normal", count, seed + 1000)
    check(n, other, n, other)


@pytest.mark.parametrize("golden", REAL)
@pytest.mark.parametrize("target", REAL)
def test_mixed_dtypes(target: str, golden: str) -> None:
    for seed in range(4):
        n = numpy_values(target, "normal", 101, seed)
        b = numpy_values(golden, "normal", 101, seed + 50)
        check(n, b, n, b)
        with np.errstate(all="ignore"):
            b = n.astype(golden)
        check(n, b, n, b)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("seed", range(30))
def test_nan_and_inf_anywhere(dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = numpy_values(dtype, "normal", [1, 5, 40, 3000][seed % 4], seed)
    b = golden_near(n, seed)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
    share = rng.choice([0.01, 0.3, 1.0])
    places = rng.random(n.size) < share
    n[places] = rng.choice(special, places.sum())
    # Half of the time both sides have them at the same positions, sign aside.
    if seed % 2:
        b[places] = np.where(np.isnan(n[places]), n[places], -n[places])
    else:
        places = rng.random(n.size) < share
        b[places] = rng.choice(special, places.sum())
    check(n, b, n, b)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["zero", "large", "tiny", "nan", "pos_inf", "neg_inf", "both_inf"])
@pytest.mark.parametrize("golden_kind", ["normal", "zero", "large", "tiny", "nan", "pos_inf", "both_inf"])
def test_kinds_of_values(dtype: str, kind: str, golden_kind: str) -> None:
    # Squares of the largest doubles overflow in numpy too; there nothing can be compared.
    if dtype == "float64" and "large" in (kind, golden_kind):
        dtype = "float32"
    n, b = numpy_values(dtype, kind, 60, 1), numpy_values(dtype, golden_kind, 60, 2)
    if "tiny" in (kind, golden_kind) and dtype == "float64":
        n, b = n * 2.0**600, b * 2.0**600
    check(n, b, n, b)


@pytest.mark.parametrize("seed", range(20))
def test_bfloat16_counts_as_float32(seed: int) -> None:
    kind = ["normal", "nan", "both_inf", "zero"][seed % 4]
    n = torch_values("bfloat16", kind, 100, seed)
    b = (n.float() * torch.from_numpy(np.random.default_rng(seed).choice([1, 1.004, 1.1], 100))).bfloat16()
    wide_n, wide_b = n.float().numpy(), b.float().numpy()
    check(n, b, wide_n, wide_b)
    check(n, wide_b, wide_n, wide_b)
    half = wide_b.astype(np.float16)
    check(n, half, wide_n, half)


@pytest.mark.parametrize("value", [-2, -1, 0, 1, 2, 255])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_as_in_numpy(dtype: str, value: int) -> None:
    limits = np.iinfo(dtype)
    edges = np.array([limits.min, limits.min + 1, 0, 1, limits.max // 2, limits.max - 1, limits.max], dtype)
    shift = np.array(value).astype(dtype)
    with np.errstate(all="ignore"):
        b = edges + shift
    check(edges, b, edges, b)
    check(b, edges, b, edges)
    check(edges, edges[::-1], edges, edges[::-1])


@pytest.mark.parametrize("dtype", REAL)
def test_zero_dimensions(dtype: str) -> None:
    for seed in range(10):
        n = numpy_values(dtype, "normal", 1, seed).reshape(())
        b = numpy_values(dtype, "normal", 1, seed + 1).reshape(())
        check(n, b, n, b)
    three, four = np.array(3, np.uint8), np.array(4, np.uint8)
    metrics = pair_metrics(three, four)
    assert metrics is not None
    assert metrics["scaled"]["max_abs_error"] == 255


@pytest.mark.parametrize("layout", [name for name in NUMPY_LAYOUTS if name != "empty"])
def test_layouts_are_read_in_row_major_order(layout: str) -> None:
    for dtype in ("float16", "float32", "float64", "int32", "uint8", "complex64"):
        array = NUMPY_LAYOUTS[layout](numpy_values(dtype, "normal").reshape(SHAPE))
        plain = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="))
        metrics = pair_metrics(array, plain)
        assert metrics is not None
        assert metrics["equal_count"] == array.size
        assert metrics["first_mismatch"] is None
        if array.size > 1:
            plain.reshape(-1)[-1] += 1
            metrics = pair_metrics(array, plain)
            assert metrics is not None
            assert metrics["first_mismatch"] == array.size - 1


def test_shapes_need_only_as_many_elements() -> None:
    a = np.arange(12.0)
    metrics = pair_metrics(a.reshape(3, 4), torch.arange(12.0).reshape(2, 6))
    assert metrics is not None
    assert metrics["equal_count"] == 12
    with pytest.raises(ValueError, match="12 elements on one side, 11 on the other"):
        pair_metrics(a, a[1:])
    assert pair_metrics(a[:0], a[:0].reshape(0, 4)) is None


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_by_modulus(dtype: str, seed: int) -> None:
    a, b = numpy_values(dtype, "normal", 50, seed), numpy_values(dtype, "normal", 50, seed + 1)
    b[::5] = a[::5]
    b[1::5] = a[1::5] * (1 + 1e-4j)
    b[2] = 0
    metrics = pair_metrics(a, b)
    assert metrics is not None
    wide_a, wide_b = a.astype("complex128"), b.astype("complex128")
    distance, larger = abs(wide_a - wide_b), np.maximum(abs(wide_a), abs(wide_b))
    assert metrics["equal_count"] == (a == b).sum()
    assert metrics["first_mismatch"] == int((a != b).argmax())
    assert metrics["max_abs_error"] == pytest.approx(distance.max(), rel=1e-14)
    assert metrics["euclidean_distance"] == pytest.approx(np.linalg.norm(distance), rel=1e-12)
    flat_a, flat_b = wide_a.view("float64"), wide_b.view("float64")
    norms = np.linalg.norm(flat_a) * np.linalg.norm(flat_b)
    assert metrics["cosine"] == pytest.approx(flat_a.dot(flat_b) / norms, rel=1e-12)
    # These are float32 for complex64, as in numpy.
    rel = 2e-7 if dtype == "complex64" else 1e-14
    assert metrics["scaled"]["max_abs_error"] == pytest.approx(distance.max(), rel=rel)
    assert metrics["scaled"]["max_relative_error"] == pytest.approx((distance / larger).max(), rel=rel)
    assert metrics["scaled"]["within_thousandth"] == (distance <= 0.001 * larger).sum()
    assert metrics["scaled"]["within_hundredth"] == (distance <= 0.01 * larger).sum()


@pytest.mark.parametrize(
    ("target", "golden", "cosine"),
    [([0.0, 0.0], [0.0, 0.0], 1.0), ([0.0, 0.0], [1.0, 0.0], math.nan), ([1.0, 0.0], [0.0, 0.0], math.nan)],
)
def test_cosine_of_zeros(target: list[float], golden: list[float], cosine: float) -> None:
    metrics = pair_metrics(np.array(target), np.array(golden))
    assert metrics is not None
    assert metrics["cosine"] == pytest.approx(cosine, nan_ok=True)


def test_a_golden_zero_is_shifted_by_epsilon() -> None:
    for dtype, expected in [("float64", 2.0**52), ("float32", 2.0**52), ("float16", math.inf)]:
        metrics = pair_metrics(np.array([1, 1], dtype), np.array([0, 1], dtype))
        assert metrics is not None
        assert metrics["max_relative_error"] == expected


def test_large_pairs_do_not_depend_on_threads() -> None:
    n = numpy_values("float32", "normal", 1_000_003, 5)
    b = n.copy()
    b[[123_456, 999_999]] += np.float32(0.5)
    metrics = pair_metrics(n, b)
    assert metrics is not None
    assert metrics["equal_count"] == 1_000_001
    assert metrics["first_mismatch"] == 123_456
    check(n, b, n, b)
    check(np.repeat(n, 2)[::2], b, n, b)
