"""``seed_all``: the same numbers in every run, and no dropout."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from msprobe.core.common.exceptions import MsprobeException
from msprobe.pytorch import seed, seed_all

from .helpers import log_lines

DROPOUTS = ["dropout", "dropout2d", "dropout3d"]
VARIABLES = ["PYTHONHASHSEED", "HCCL_DETERMINISTIC", "CUBLAS_WORKSPACE_CONFIG"]
REMOVED = "[INFO] For precision comparison, the probability p in the dropout method is set to 0."


@pytest.fixture(autouse=True)
def untouched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts back everything that is set for the whole process."""
    for name in DROPOUTS:
        monkeypatch.setattr(F, name, getattr(F, name))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    cudnn = torch.backends.cudnn
    before = torch.are_deterministic_algorithms_enabled(), cudnn.deterministic, cudnn.benchmark
    yield
    torch.use_deterministic_algorithms(before[0])
    cudnn.deterministic, cudnn.benchmark = before[1:]
    for name in VARIABLES:
        os.environ.pop(name, None)


def drawn() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_one_seed_gives_one_sequence() -> None:
    found = []
    for number in (7, 8, 7):
        seed_all(number)
        found.append(drawn())
    assert found[0] == found[2]
    assert all(one != other for one, other in zip(found[0], found[1]))
    seed_all()
    by_default = drawn()
    random.seed(1234)
    np.random.seed(1234)
    torch.manual_seed(1234)
    assert by_default == drawn()


@pytest.mark.parametrize("mode", [True, False])
def test_the_mode_reaches_torch_and_the_environment(mode: bool) -> None:
    torch.backends.cudnn.benchmark = True
    seed_all(7, mode, rm_dropout=False)
    assert torch.are_deterministic_algorithms_enabled() is mode
    assert (os.environ["PYTHONHASHSEED"], os.environ["HCCL_DETERMINISTIC"]) == ("7", str(mode))
    assert (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark) == (True, False)


@pytest.mark.parametrize(
    ("version", "expected"),
    [(None, None), ("9.2", None), ("10.1", None), ("10.2", ":4096:8"), ("12.8", ":4096:8")],
)
def test_cublas_gets_a_workspace_with_cuda(
    version: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", version)
    seed_all()
    assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == expected


def test_an_npu_is_seeded_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Npu:
        seeds: list[int] = []  # noqa: RUF012

        @staticmethod
        def is_available() -> bool:
            return True

        @classmethod
        def manual_seed_all(cls, number: int) -> None:
            cls.seeds.append(number)

    monkeypatch.setattr(torch, "npu", Npu, raising=False)
    # torch's own manual_seed looks for every device it knows; this one it does not.
    monkeypatch.setattr(torch, "manual_seed", lambda number: None)
    seed_all(5, rm_dropout=False)
    assert Npu.seeds == [5]


@pytest.mark.parametrize(
    "arguments",
    [
        {"seed": -1},
        {"seed": 2**32},
        {"seed": 1.0},
        {"seed": "1"},
        {"seed": None},
        {"seed": True},
        {"mode": 1},
        {"mode": None},
        {"rm_dropout": 0},
        {"rm_dropout": "no"},
    ],
    ids=str,
)
def test_wrong_arguments_change_nothing(
    arguments: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    dropout, state = F.dropout, random.getstate()
    with pytest.raises(MsprobeException) as raised:
        seed_all(**arguments)
    assert raised.value.code == 0
    assert next(iter(arguments)) in raised.value.error_info
    assert log_lines(capsys.readouterr().out) == [f"[ERROR] {raised.value.error_info}"]
    assert F.dropout is dropout and random.getstate() == state


def test_the_ends_of_the_range_are_seeds() -> None:
    seed_all(0)
    seed_all(2**32 - 1)
    assert os.environ["PYTHONHASHSEED"] == "4294967295"


def test_other_errors_are_logged_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(number: int) -> None:
        raise RuntimeError("no device")

    monkeypatch.setattr(torch, "manual_seed", fail)
    seed_all()
    assert log_lines(capsys.readouterr().out) == ["[ERROR] seed_all did not finish: no device"]


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_keeps_everything(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    seed_all()
    assert log_lines(capsys.readouterr().out) == [REMOVED]
    values = torch.arange(1.0, 33.0).reshape(2, 4, 2, 2)
    function = getattr(F, name)
    assert torch.equal(function(values, 0.9), values)
    assert torch.equal(function(values, p=1.0, training=True, inplace=False), values)
    for p in (-0.1, 1.5):
        with pytest.raises(ValueError, match=f"dropout probability has to be between 0 and 1, but got {p}"):
            function(values, p)
    assert function.__name__ == name


def test_modules_follow() -> None:
    seed_all()
    values = torch.ones(4, 4, 4, 4)
    for module in (torch.nn.Dropout(0.5), torch.nn.Dropout2d(0.5)):
        assert torch.equal(module.train()(values), values)


def test_gradients_pass_unscaled() -> None:
    seed_all()
    values = torch.ones(8, requires_grad=True)
    F.dropout(values, 0.5).sum().backward()
    assert torch.equal(values.grad, torch.ones(8))


def test_dropout_stays_when_it_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    seed_all(rm_dropout=False)
    assert capsys.readouterr().out == ""
    assert (F.dropout(torch.ones(1000), 0.5) == 0).any()


def test_dropout_is_replaced_once() -> None:
    seed.remove_dropout()
    first = F.dropout
    seed.remove_dropout()
    assert F.dropout is first
