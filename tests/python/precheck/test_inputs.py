"""Inputs made from what a dump tells of them, against those the reference made."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from msprobe.pytorch.precheck.execute import as_computed
from msprobe.pytorch.precheck.inputs import Device, InputMaker, read_recorded
from msprobe.pytorch.precheck.precision import plan_precision

GOLDEN = Path(__file__).parents[2] / "golden" / "precheck"
CASES = json.loads((GOLDEN / "data_generation" / "expected.json").read_text())
SEED = CASES["seed"]
_TOKENS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def decoded(info: Any) -> Any:
    """A description with the numbers JSON has no word for; those of one case are texts on purpose."""
    if isinstance(info, dict):
        return {key: decoded(value) for key, value in info.items()}
    if isinstance(info, list):
        return [decoded(item) for item in info]
    return _TOKENS.get(info, info) if isinstance(info, str) else info


def check(value: Any, expected: Any) -> None:
    """Dtype, shape, gradient and elements, as the golden case says."""
    if isinstance(value, Device):
        value = value.description
    if isinstance(expected, list):
        assert len(value) == len(expected)
        for one, other in zip(value, expected):
            check(one, other)
    elif "python" in expected:
        assert (type(value).__name__.replace("ellipsis", "ellipsis"), repr_of(value)) == (
            expected["python"],
            expected["repr"],
        )
    elif "dtype" in expected:
        given = as_computed(value) if value.requires_grad else value
        assert str(value.dtype) == expected["dtype"]
        assert list(value.shape) == expected["shape"]
        assert given.requires_grad == expected["requires_grad"]
        assert given.is_leaf == expected["is_leaf"]
        numbers = value.detach().reshape(-1).tolist()
        wanted = [_TOKENS.get(number, number) for number in expected["values"]]
        assert len(numbers) == len(wanted)
        for number, want in zip(numbers, wanted):
            assert number == want or (math.isnan(number) and math.isnan(want))
    else:
        assert set(value) == set(expected)
        for key in expected:
            check(value[key], expected[key])


def repr_of(value: Any) -> str:
    return str(value) if type(value).__module__ == "numpy" else repr(value)


@pytest.mark.parametrize("case", CASES["single"], ids=lambda case: case["id"])
def test_one_value(case: dict[str, Any]) -> None:
    maker = InputMaker(case["api_name"], SEED)
    expected = case["output"]
    if "exception" in expected:
        with pytest.raises(Exception) as caught:
            maker.value(decoded(case["info"]))
        assert str(caught.value) == expected["text"]
        return
    check(maker.value(decoded(case["info"])), expected)


@pytest.mark.parametrize("case", CASES["api"], ids=lambda case: case["api_name"])
def test_all_arguments_of_an_api(case: dict[str, Any]) -> None:
    inputs = InputMaker(case["api_name"], SEED).inputs(decoded(case["info"]))
    expected = case["result"]
    check(inputs.args, expected["args"])
    assert set(inputs.kwargs) == set(expected["kwargs"])
    for key, want in expected["kwargs"].items():
        check(inputs.kwargs[key], want)


def described(
    shape: list[int], low: Any, high: Any, dtype: str = "torch.float32", **more: Any
) -> dict[str, Any]:
    return {"type": "torch.Tensor", "dtype": dtype, "shape": shape, "Min": low, "Max": high, **more}


def test_inputs_follow_from_the_seed_alone() -> None:
    info = {"input_args": [described([7], -1.0, 1.0), described([7], -1.0, 1.0)], "input_kwargs": {}}
    first = InputMaker("add", 5).inputs(info)
    torch.manual_seed(99)
    torch.rand(1000)
    again = InputMaker("add", 5).inputs(info)
    other = InputMaker("add", 6).inputs(info)
    assert all(torch.equal(one, two) for one, two in zip(first.args, again.args))
    assert not torch.equal(first.args[0], other.args[0])
    assert not torch.equal(first.args[0], first.args[1])


def test_making_inputs_leaves_the_generator_of_the_process_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(4)
    torch.manual_seed(7)
    InputMaker("add", 5).value(described([100], 0.0, 1.0))
    assert torch.equal(torch.rand(4), expected)


def test_a_scalar_of_infinities_is_made() -> None:
    made = InputMaker("exp", 1).value(described([], -math.inf, math.inf))
    assert made.shape == () and math.isinf(made.item())


def test_nesting_ends_somewhere() -> None:
    nested: Any = {"type": "int", "value": 1}
    for _ in range(12):
        nested = [nested]
    with pytest.raises(ValueError, match="nested more than 10 deep"):
        InputMaker("cat", 1).value(nested)


@pytest.mark.parametrize("name", ["../outside.pt", "x.txt", "/etc/passwd.pt"])
def test_files_outside_of_the_dump_are_not_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"does not lie in|is not a pt or numpy file"):
        read_recorded(tmp_path, name)


def test_recorded_tensors_are_read() -> None:
    directory = GOLDEN / "run_ut_real_data" / "dump" / "dump_tensor_data"
    for path in sorted(directory.glob("*.pt")):
        expected = torch.load(path, weights_only=True)
        found = read_recorded(directory, path.name)
        assert (
            found.dtype == expected.dtype and torch.equal(found, expected.detach())
        ) or found.isnan().any()


@pytest.mark.parametrize(
    ("dtypes", "output", "bench", "autocast"),
    [
        ([torch.float16], None, torch.float32, None),
        ([torch.bfloat16], "torch.bfloat16", torch.float32, None),
        ([torch.float32], "torch.float32", torch.float64, None),
        ([torch.float16, torch.float32], "torch.float16", torch.float32, torch.float16),
        ([torch.float32, torch.bfloat16], None, torch.float32, torch.bfloat16),
        ([torch.float32], "torch.bfloat16", torch.float64, torch.bfloat16),
        ([torch.float16], "torch.float32", torch.float32, None),
        ([torch.int64], "torch.float32", None, None),
        ([torch.float64], "torch.float64", None, None),
    ],
)
def test_precision_of_the_bench(dtypes: list[Any], output: Any, bench: Any, autocast: Any) -> None:
    given = [torch.ones(2).to(dtype) for dtype in dtypes]
    precision = plan_precision("add", given, {"type": "torch.Tensor", "dtype": output})
    assert precision.autocast == autocast
    for tensor in given:
        assert precision.raised(tensor.dtype) == (bench or tensor.dtype)


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("conv2d", torch.float32, torch.float32),
        ("conv2d", torch.float16, torch.float32),
        ("conv1d", torch.float32, torch.float32),
        ("type_as", torch.float16, torch.float16),
    ],
)
def test_apis_with_a_precision_of_their_own(name: str, dtype: Any, expected: Any) -> None:
    assert plan_precision(name, [torch.ones(1, dtype=dtype)], None).raised(dtype) == expected
