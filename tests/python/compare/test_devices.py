"""Is a healthy training on another device left alone, and is a fault on it named? A few of all the pairs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from .devices import corpus, sums
from .devices.cases import HALVES, VARIANTS, all_cases
from .devices.corpus import Score
from .devices.models import DTYPES, MODELS
from .faults import score

MODES = ("L0-statistics", "mix-statistics")
# Those of the other half are for figures only.
CASES = [
    case.name
    for case in all_cases()
    if case.model in ("llama", "vit")
    and case.dtype in ("float32", "bfloat16")
    and (case.variant, case.world, case.half) == ("sums", 1, "tuning")
]
KEYS = [f"{case}-{mode}" for case in CASES for mode in MODES]


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Score]]:
    root = tmp_path_factory.mktemp("devices")
    entries = corpus.make(root, [case for case in all_cases() if case.name in CASES], MODES)
    done = corpus.score(root, entries, score.binary())
    yield {f"{one.entry['case']}-{one.entry['mode']}": one for one in done}
    shutil.rmtree(root)


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_verdict(scores: dict[str, Score], key: str) -> None:
    one = scores[key]
    assert one.outcome == "right", one.line


def test_halves_have_everything() -> None:
    cases = all_cases()
    for half in HALVES:
        chosen = [case for case in cases if case.half == half]
        assert 0.4 < len(chosen) / len(cases) < 0.6
        assert {case.model for case in chosen} == set(MODELS)
        assert {case.dtype for case in chosen} == set(DTYPES)
        assert {case.variant for case in chosen} == set(VARIANTS)
        assert {case.fault for case in chosen} == {case.fault for case in cases}
        assert {case.model for case in chosen if not case.is_fault} == set(MODELS)


def _tensors(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


_FUNCTIONS: dict[str, tuple[Any, list[torch.Tensor]]] = {
    "linear": (F.linear, _tensors((2, 5, 40), (7, 40), (7,))),
    "linear_without_bias": (F.linear, _tensors((5, 40), (7, 40))),
    "addmm": (torch.addmm, _tensors((7,), (5, 40), (40, 7))),
    "matmul": (torch.matmul, _tensors((2, 3, 5, 40), (2, 3, 40, 7))),
    "matmul_repeated": (torch.matmul, _tensors((2, 1, 5, 40), (3, 40, 7))),
    "convolution": (
        lambda *args: F.conv2d(*args, stride=2, padding=1),
        _tensors((2, 4, 9, 8), (6, 4, 3, 3), (6,)),
    ),
    "depthwise": (
        lambda *args: F.conv2d(*args, padding=2, groups=4),
        _tensors((2, 4, 9, 8), (8, 1, 5, 5), (8,)),
    ),
    "layer_norm": (lambda x, *args: F.layer_norm(x, (40,), *args), _tensors((2, 5, 40), (40,), (40,))),
    "batch_norm": (
        lambda x, weight, bias: F.batch_norm(x, None, None, weight, bias, training=True),
        _tensors((3, 4, 5, 6), (4,), (4,)),
    ),
    "mean": (lambda x: x.mean(-1, keepdim=True), _tensors((2, 5, 40))),
    "mean_of_two": (lambda x: x.mean((-2, -1)), _tensors((2, 5, 40))),
    "softmax": (lambda x: F.softmax(x, dim=1), _tensors((2, 40, 3))),
    "log_softmax": (lambda x: F.log_softmax(x, dim=-1), _tensors((2, 5, 40))),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_other_device_computes_the_same(name: str) -> None:
    """With sums in another order, and an autograd node of its own."""
    function, inputs = _FUNCTIONS[name]
    expected = function(*inputs)
    weights = torch.randn_like(expected)
    gradients = torch.autograd.grad(expected, inputs, weights)
    with sums.other_device():
        result = function(*inputs)
        others = torch.autograd.grad(result, inputs, weights)
    assert type(result.grad_fn).__name__ != type(expected.grad_fn).__name__
    for one, other in zip((expected, *gradients), (result, *others)):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    assert type(function(*inputs).grad_fn).__name__ == type(expected.grad_fn).__name__
