"""``statistics`` against exact arithmetic and against torch, for every dtype, layout and kind of value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Callable

import numpy as np
import pytest
import torch

from msprobe.core.tensor import statistics
from tests.python.samples import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMPY_DTYPES,
    NUMPY_LAYOUTS,
    SHAPE,
    TORCH_DTYPES,
    TORCH_LAYOUTS,
    kinds_of,
    numpy_values,
    torch_values,
)

NAN = math.nan


def same(ours: Any, exact: Any) -> bool:
    """Equal in type and value; NaN equals NaN."""
    if isinstance(exact, float) and math.isnan(exact):
        return isinstance(ours, float) and math.isnan(ours)
    return type(ours) is type(exact) and bool(ours == exact)


def exact_statistics(values: list[Any], dtype: str, *, zero_d: bool) -> dict[str, Any]:
    """The definition, with sums of any size and no rounding but the last."""
    result: dict[str, Any] = dict.fromkeys(["max", "min", "mean", "norm"])
    result |= {"count": len(values), "nan": 0, "pos_inf": 0, "neg_inf": 0}
    result["zero"] = sum(value == 0 for value in values)
    if not values:
        return result
    if dtype == "bool":
        return result | {"max": any(values), "min": all(values)}
    if dtype in COMPLEX:
        values = [math.hypot(value.real, value.imag) for value in values]
    result["nan"] = sum(value != value for value in values)
    result["pos_inf"] = sum(value == math.inf for value in values)
    result["neg_inf"] = sum(value == -math.inf for value in values)
    if zero_d and dtype not in COMPLEX:
        return result | dict.fromkeys(["max", "min", "mean", "norm"], values[0])
    if result["nan"]:
        result |= dict.fromkeys(["max", "min", "mean", "norm"], NAN)
    else:
        result |= {"max": max(values), "min": min(values)}
        result |= {"mean": exact_mean(values), "norm": math.hypot(*values)}
    if dtype in COMPLEX:
        result["norm"] = None
    return result


def exact_mean(values: list[Any]) -> float:
    infinities = [value for value in values if abs(value) == math.inf]
    if infinities:
        return float(sum(infinities))
    return float(sum(map(Fraction, values)) / len(values))


def check(ours: dict[str, Any], values: list[Any], dtype: str, *, zero_d: bool = False) -> None:
    exact = exact_statistics(values, dtype, zero_d=zero_d)
    assert list(ours) == ["max", "min", "mean", "norm", "count", "nan", "pos_inf", "neg_inf", "zero"]
    for key in ("max", "min", "count", "nan", "pos_inf", "neg_inf", "zero"):
        if dtype in COMPLEX and key in ("max", "min") and exact[key] is not None:
            assert ours[key] == pytest.approx(exact[key], rel=1e-15, abs=0, nan_ok=True), key
        else:
            assert same(ours[key], exact[key]), (key, ours[key], exact[key])
    largest = max((abs(value) for value in values), default=0)
    for key in ("mean", "norm"):
        if isinstance(exact[key], float) and math.isfinite(exact[key]):
            # The mean may cancel; it is as exact as sums of that many doubles of that size can be.
            slack = float(largest) * 2**-52 * 4 if key == "mean" else 0
            rel = 1e-13 if dtype in COMPLEX else 4 * 2**-52
            assert ours[key] == pytest.approx(exact[key], rel=rel, abs=slack), key
        else:
            assert same(ours[key], exact[key]), (key, ours[key], exact[key])


def torch_list(tensor: Any, dtype: str) -> list[Any]:
    """The elements as Python numbers, exactly."""
    wide = tensor.double() if dtype in FLOATS else tensor
    return list(wide.reshape(-1).tolist())


@pytest.mark.parametrize("layout", TORCH_LAYOUTS)
@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_torch(dtype: str, layout: str) -> None:
    for kind in kinds_of(dtype):
        tensor = TORCH_LAYOUTS[layout](torch_values(dtype, kind).reshape(SHAPE))
        check(statistics(tensor), torch_list(tensor, dtype), dtype, zero_d=tensor.ndim == 0)


@pytest.mark.parametrize("layout", NUMPY_LAYOUTS)
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy(dtype: str, layout: str) -> None:
    for kind in kinds_of(dtype):
        array = NUMPY_LAYOUTS[layout](numpy_values(dtype, kind).reshape(SHAPE))
        values = array.reshape(-1).astype("complex128" if dtype in COMPLEX else dtype).tolist()
        check(statistics(array), values, dtype, zero_d=array.ndim == 0)


@pytest.mark.parametrize("count", [1, 7, 8, 31, 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_any_length(dtype: str, count: int) -> None:
    tensor = torch_values(dtype, "normal", count)
    check(statistics(tensor), torch_list(tensor, dtype), dtype)


@pytest.mark.parametrize("view", [torch.clone, lambda t: t.reshape(1000, -1).t()], ids=["plain", "strided"])
@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_tensors_large_enough_for_several_threads(dtype: str, view: Callable[[Any], Any]) -> None:
    tensor = view(torch_values(dtype, "normal", 300_000))
    ours = statistics(tensor)
    wide = tensor.to(torch.complex128).abs() if dtype in COMPLEX else tensor.double()
    assert ours["count"] == 300_000
    assert ours["zero"] == int((wide == 0).sum())
    assert (float(ours["max"]), float(ours["min"])) == pytest.approx(
        (float(wide.max()), float(wide.min())), rel=1e-15 if dtype in COMPLEX else 0, abs=0
    )
    if dtype == "bool":
        assert (ours["mean"], ours["norm"]) == (None, None)
        return
    assert ours["mean"] == pytest.approx(float(wide.mean()), rel=1e-11, abs=1e-13)
    if dtype not in COMPLEX:
        assert ours["norm"] == pytest.approx(float(torch.linalg.vector_norm(wide)), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [100, 10_000, 200_000])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_at_least_as_exact_as_torch(dtype: str, count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    offset = [0.0, 1.0, -0.001, 10.0, 100.0][seed]
    tensor = (torch.randn(count, generator=generator) + offset).to(getattr(torch, dtype))
    values = tensor.double().tolist()
    ours = statistics(tensor)
    exact_sum = math.fsum(values)
    for key, exact, native in [
        ("mean", exact_sum / count, float(tensor.mean())),
        # Squares of these dtypes are exact in double.
        ("norm", math.sqrt(math.fsum(x * x for x in values)), float(torch.linalg.vector_norm(tensor))),
    ]:
        scale = max(abs(exact), 1.0)
        assert abs(ours[key] - exact) <= abs(native - exact) + 1e-15 * scale, key
        assert abs(ours[key] - exact) <= 1e-13 * scale, key


def test_float16_does_not_overflow() -> None:
    tensor = torch.full((1000,), 60000.0, dtype=torch.float16)
    assert statistics(tensor)["mean"] == 60000.0 - 60000.0 % 32
    assert statistics(tensor)["norm"] == pytest.approx(statistics(tensor)["mean"] * math.sqrt(1000))


def test_float64_beyond_the_range_of_its_squares() -> None:
    for scale in (1e300, 1e-300):
        ours = statistics(torch.tensor([3.0, 4.0], dtype=torch.float64) * scale)
        assert ours["norm"] == pytest.approx(5 * scale, rel=1e-15)
    largest = np.full(10, np.finfo("float64").max)
    assert statistics(largest)["mean"] == pytest.approx(largest[0], rel=1e-15)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extremes_of_integers_stay_exact(dtype: str) -> None:
    limits = np.iinfo(dtype)
    ours = statistics(np.array([limits.min, limits.max], dtype))
    assert (ours["min"], ours["max"]) == (limits.min, limits.max)
    for limit in (limits.min, limits.max):
        zero_d = statistics(np.array(limit, dtype))
        assert [zero_d[key] for key in ("max", "min", "mean", "norm")] == [int(limit)] * 4


def test_gradients_subclasses_and_numpy_scalars() -> None:
    parameter = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    assert statistics(parameter)["norm"] == 5.0
    assert statistics(parameter * 2)["norm"] == 10.0
    assert statistics(np.ma.array([3.0, 4.0]))["norm"] == 5.0
    assert statistics(np.float32(2.5))["norm"] == 2.5
    assert statistics(np.array([3, 4], np.float32)[1])["max"] == 4.0


def test_a_numpy_scalar_is_held_while_it_is_measured() -> None:
    for value in range(2000):
        assert statistics(np.float64(value))["max"] == value


class TestRefused:
    @pytest.mark.parametrize("value", [None, 1.0, [1.0], "tensor", (1, 2), {}, object(), b"12"])
    def test_what_is_no_tensor(self, value: object) -> None:
        with pytest.raises(TypeError, match=f"expected a PyTorch tensor .* got {type(value).__name__}"):
            statistics(value)

    def test_tensors_elsewhere(self) -> None:
        with pytest.raises(TypeError, match="is on meta; move it to the CPU first"):
            statistics(torch.zeros(3, device="meta"))

    @pytest.mark.parametrize(
        "view",
        [lambda z: z.conj(), lambda z: z.conj().imag, lambda z: torch._neg_view(z)],
        ids=["conj", "imag_of_conj", "neg"],
    )
    def test_pending_conj_and_neg(self, view: Callable[[Any], Any]) -> None:
        tensor = view(torch.tensor([1 + 2j, 3 - 4j]))
        with pytest.raises(TypeError, match=r"resolve_conj\(\)\.resolve_neg\(\)"):
            statistics(tensor)
        resolved = tensor.resolve_conj().resolve_neg()
        assert statistics(resolved)["count"] == 2

    def test_sparse_tensors(self) -> None:
        with pytest.raises(TypeError, match=r"torch\.sparse_coo; call to_dense\(\) first"):
            statistics(torch.eye(3).to_sparse())

    @pytest.mark.parametrize(
        ("array", "name"),
        [
            (np.array([1, "a"], object), "object"),
            (np.array(["text"]), "str"),
            (np.array([b"bytes"]), "bytes"),
            (np.zeros(3, "datetime64[ns]"), "datetime64"),
            (np.zeros(3, np.longdouble), "float128"),
            (np.zeros(3, [("a", "f4"), ("b", "i4")]), "void"),
            (np.zeros(3, "V0"), "void"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_dtypes_without_numbers(self, array: Any, name: str) -> None:
        with pytest.raises(TypeError, match=f"unsupported dtype {name}"):
            statistics(array)
