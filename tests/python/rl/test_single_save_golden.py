"""What the reference saved, saved again: trees, array files, figures, exceptions and warnings."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from msprobe.core import SingleSave

from . import golden_cases as golden

# A value that is no tensor, and data that is no dict; the wording is what scripts' logs are searched for.
NO_VALUE = (
    "[WARNING] value should be (<class 'list'>, <class 'tuple'>, <class 'dict'>) or Tensor when save data"
)
NO_DICT = "[WARNING] SingleSave data type not valid, should be dict. Skip current save process."


@pytest.mark.parametrize(("case", "side"), golden.sides("pytorch"))
def test_recorded_runs(case: str, side: str, tmp_path: Path) -> None:
    ranks = golden.replay(case, side, tmp_path)
    recorded = golden.GOLDEN / case
    golden.check_tree(tmp_path / f"dump_{side}", recorded / f"dump_{side}", golden.precisions(case, side))
    outcomes = recorded / "outcome.json"
    expected = json.loads(outcomes.read_text()) if outcomes.exists() else {}
    for rank, replayed in enumerate(ranks):
        count = len(golden.calls(case, side)["calls"][str(rank)])
        assert replayed.outcome == expected.get(f"{side}/rank{rank}", [None] * count)
        if not expected:
            assert replayed.log == []


def test_what_is_skipped_is_warned_about(tmp_path: Path) -> None:
    (replayed,) = golden.replay("containers_and_errors", "a", tmp_path)
    assert set(replayed.log) == {NO_VALUE, NO_DICT}


@pytest.mark.parametrize("run", ["key_a", "key_b"])
def test_the_recorded_toy_loop(run: str, tmp_path: Path) -> None:
    perturb = ["perturb"] if run == "key_b" else []
    driver = str(golden.GOLDEN / "end_to_end" / "driver.py")
    golden.run_ranks([[driver, run, rank, "2", "key", *perturb] for rank in ("0", "1")], tmp_path)
    golden.check_tree(tmp_path / run, golden.GOLDEN / "end_to_end" / run, {}, tolerance=1e-5)


class StandInTensor:
    """As much of a MindSpore tensor as saving needs."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def asnumpy(self) -> Any:
        return self._value


def stand_in(monkeypatch: pytest.MonkeyPatch, rank: int | None = None) -> None:
    """Puts a module named mindspore in place. With a rank, a process group is there."""
    module, communication = ModuleType("mindspore"), ModuleType("mindspore.communication")
    communication.__dict__["GlobalComm"] = type("GlobalComm", (), {"INITED": rank is not None})
    communication.__dict__["get_rank"] = lambda: rank
    module.__dict__.update(Tensor=StandInTensor, communication=communication)
    monkeypatch.setitem(sys.modules, "mindspore", module)


def build(value: dict[str, Any]) -> Any:
    if "list" in value:
        return [build(element) for element in value["list"]]
    tensor = value["t"]
    return StandInTensor(np.array(tensor["data"], dtype=tensor["dtype"]).reshape(tensor["shape"]))


@pytest.mark.parametrize(("case", "side"), golden.sides("mindspore"))
def test_recorded_runs_of_mindspore(
    case: str, side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch)
    monkeypatch.setattr(SingleSave, "_instance", None)
    saver = SingleSave(str(tmp_path / "dump"), fmk="mindspore")
    for call in golden.calls(case, side)["calls"]["0"]:
        if call["op"] == "step":
            saver.step()
        else:
            saver.save({key: build(value) for key, value in call["data"].items()})
    saver.flush()
    recorded = golden.GOLDEN / case / f"dump_{side}"
    golden.check_tree(tmp_path / "dump", recorded, golden.precisions(case, side))


def test_the_rank_of_mindspore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, rank=3)
    monkeypatch.setattr(SingleSave, "_instance", None)
    saver = SingleSave(str(tmp_path / "dump"), fmk="mindspore")
    saver.save({"k": StandInTensor(np.arange(4, dtype=np.int32))})
    saver.step()
    assert saver.rank == 3
    saved = tmp_path / "dump/data/k/step0/rank3/micro_step0/k.npy"
    assert np.load(saved).dtype == np.int32
