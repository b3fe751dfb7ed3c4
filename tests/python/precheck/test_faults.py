"""Wrong operators are found, and right ones are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from msprobe import _native
from msprobe.pytorch.precheck.check import Checker
from msprobe.pytorch.precheck.repeatable import without_dropout
from tests.python.precheck.faults import FAULTS, Fault, dump_of, installed

CPU = torch.device("cpu")


def outcome_of(fault: Fault, directory: Path, is_strict: bool = False) -> _native.PrecheckOutcome:
    path = directory / "dump.json"
    path.write_text(json.dumps(dump_of(fault)))
    with without_dropout():
        return Checker(_native.PrecheckPlan(path), CPU, None, is_strict).check(0)


def test_there_are_enough_of_them() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 25
    assert sum(fault.direction == "backward" for fault in FAULTS) >= 5


@pytest.mark.parametrize("is_strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_wrong_operator_is_an_error(
    fault: Fault, is_strict: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = outcome_of(fault, tmp_path, is_strict)
    assert right.forward in ("pass", "Warning")
    assert right.backward in ("pass", "Warning", " ")
    monkeypatch.setattr(*installed(fault))
    wrong = outcome_of(fault, tmp_path, is_strict)
    assert (wrong.forward if fault.direction == "forward" else wrong.backward) == "error"
    if fault.direction == "backward":
        assert wrong.forward == "pass"
