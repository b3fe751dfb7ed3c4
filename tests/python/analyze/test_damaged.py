"""Dumps of which something is missing: there is an answer all the same, and it says what was not there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from .answers import Answer, ask, command
from .corpus import step_directory

LOG = (1, "Torch.log.0.forward", "produced")


@pytest.fixture
def step(corpus: Path, tmp_path: Path) -> Any:
    """A copy of a case that can be spoilt."""

    def copy(name: str, level: str) -> Path:
        target = tmp_path / "step0"
        shutil.copytree(step_directory(corpus, level, name), target)
        return target

    return copy


def told(answer: Answer) -> tuple[int, str, str]:
    culprit = answer.report["culprit"]
    return culprit["rank"], culprit["operation"], culprit["kind"]


def problems(answer: Answer) -> str:
    """Everything that is said to be wrong with the dump, as one text."""
    report = answer.report
    return "\n".join(map(str, [*report["problems"], *(entry["problems"] for entry in report["ranks"])]))


def cut_before(path: Path, name: str) -> None:
    """Ends a file as a crash does, in the middle of the record before this name."""
    text = path.read_text()
    place = text.index(f'"{name}"')
    path.write_text(text[: place - 30])


def test_a_rank_that_was_told_is_missing(step: Any, tmp_path: Path) -> None:
    where = step("forward_log", "L1")
    shutil.rmtree(where / "rank0")
    answer = ask(where, tmp_path / "out")
    assert told(answer) == LOG
    assert answer.code == 1
    assert "0" in problems(answer)
    assert [entry["rank"] for entry in answer.report["ranks"]] == [1]


def test_the_rank_it_came_from_is_missing(step: Any, tmp_path: Path) -> None:
    """What came in by broadcast came from a rank nobody has: that is the answer, and no operation here."""
    where = step("by_broadcast", "L1")
    shutil.rmtree(where / "rank0")
    answer = ask(where, tmp_path / "out")
    culprit = answer.report["culprit"]
    assert culprit["kind"] == "missing_rank"
    assert culprit["operation"] == "Distributed.broadcast.0.forward"
    assert "rank 0" in culprit["reason"]
    assert answer.code == 1


def test_a_pipeline_with_a_gap(step: Any, tmp_path: Path) -> None:
    """Rank 2 is between the birth on rank 1 and rank 3: both are told, the one that is sure first."""
    where = step("by_pipeline", "L1")
    shutil.rmtree(where / "rank2")
    answer = ask(where, tmp_path / "out")
    assert told(answer) == LOG
    others = [(birth["operation"], birth["kind"]) for birth in answer.report["births"][1:]]
    assert others == [("Distributed.recv.0.forward", "missing_rank")]


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_a_dump_that_was_cut(level: str, step: Any, tmp_path: Path) -> None:
    """Rank 0 ends before the communication; rank 1 says enough."""
    where = step("forward_log", level)
    cut_before(where / "rank0" / "dump.json", "Distributed.all_reduce.0.forward")
    answer = ask(where, tmp_path / "out")
    assert told(answer) == LOG
    assert answer.report["ranks"][0]["problems"]
    assert "dump.json" in problems(answer)


def test_the_culprit_is_what_is_left_of_a_dump(step: Any, tmp_path: Path) -> None:
    where = step("forward_log", "L1")
    cut_before(where / "rank1" / "dump.json", "Distributed.all_reduce.0.forward")
    answer = ask(where, tmp_path / "out")
    assert told(answer) == LOG
    assert answer.report["ranks"][1]["problems"]


@pytest.mark.parametrize("content", [b"", b"{", b"\x00\xff not JSON", b"[]", b'{"data": 3}'])
def test_a_dump_that_is_none(content: bytes, step: Any, tmp_path: Path) -> None:
    where = step("forward_log", "L1")
    (where / "rank0" / "dump.json").write_bytes(content)
    answer = ask(where, tmp_path / "out")
    assert told(answer) == LOG
    assert answer.code in (1, 2)
    assert "rank0" in problems(answer) or answer.report["ranks"][0]["problems"]


@pytest.mark.parametrize("name", ["construct.json", "stack.json"])
@pytest.mark.parametrize("how", ["missing", "cut"])
def test_a_file_beside_the_dump(name: str, how: str, step: Any, tmp_path: Path) -> None:
    """Only what that file tells is missing from the answer."""
    where = step("forward_log", "mix")
    path = where / "rank1" / name
    if how == "missing":
        path.unlink()
    else:
        path.write_text(path.read_text()[:20])
    answer = ask(where, tmp_path / "out")
    culprit = answer.report["culprit"]
    assert (culprit["rank"], culprit["operation"]) in [LOG[:2], (1, "Module.1.Apply.forward.0")]
    assert culprit["kind"] == "produced"
    assert name in problems(answer)
    assert bool(culprit["stack"]) == (name == "construct.json")


def test_tensors_that_are_gone(step: Any, tmp_path: Path) -> None:
    """The statistics still tell; only the elements cannot be counted."""
    where = step("counted_elements", "L1")
    shutil.rmtree(where / "rank1" / "dump_tensor_data")
    shutil.rmtree(where / "rank0" / "dump_tensor_data")
    answer = ask(where, tmp_path / "out")
    assert told(answer) == LOG


def test_other_things_in_the_directory(step: Any, tmp_path: Path) -> None:
    where = step("forward_log", "L1")
    (where / "notes.txt").write_text("not a rank")
    (where / "rankless").mkdir()
    (where / "old").mkdir()
    answer = ask(where, tmp_path / "out")
    assert told(answer) == LOG
    assert answer.code == 1
    assert len(answer.report["ranks"]) == 2


def test_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "step0").mkdir()
    done = command(tmp_path / "step0", tmp_path / "out")
    assert done.returncode == 2
    assert "error:" in done.stderr
