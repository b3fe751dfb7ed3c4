"""The corpus: in every case the rank and the operation that are named are those the fault was put into."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable

import pytest

from .answers import is_finite
from .conftest import Asked
from .corpus import CASES, Case, records, stack_of, step_directory
from .registry import Arrival, Born


def places(wanted: Callable[[Case, str], bool]) -> list[Any]:
    """Cases with a level, as arguments of a test."""
    pairs = [(case, level) for case in CASES.values() for level in case.levels if wanted(case, level)]
    return [pytest.param(case, level, id=f"{case.name}-{level}") for case, level in pairs]


ALL = places(lambda case, level: True)
BAD = places(lambda case, level: bool(case.births[level]))
CLEAN = places(lambda case, level: not case.births[level])
# What communicates is not recorded at level L0.
LINKED = places(lambda case, level: bool(case.arrivals) and level != "L0")


def named(pattern: str, name: str) -> bool:
    """Whether the name is what the pattern says; dots stand for themselves."""
    return re.fullmatch(pattern.replace(".", r"\."), name) is not None


def test_the_corpus_is_large_enough() -> None:
    assert len(CASES) >= 16
    assert {case.world for case in CASES.values()} == {2, 4}


@pytest.mark.parametrize(("case", "level"), ALL)
def test_the_fault_is_in_the_dump(case: Case, level: str, corpus: Path) -> None:
    """The corpus checked by itself: a birth is there, and what arrived did arrive."""
    step = step_directory(corpus, level, case.name)
    assert sorted(path.name for path in step.iterdir()) == [f"rank{rank}" for rank in range(case.world)]
    assert not list(step.rglob("dump_error_info.log"))
    for born in case.births[level]:
        found = {
            name: value for name, value in records(step, born.rank).items() if named(born.operation, name)
        }
        assert found, born
        assert all(not is_finite(record["output"]) for record in found.values())
        assert any(born.mark in comment(frame) for name in found for frame in stack_of(step, born.rank, name))
        if born.kind == "produced" and case.name != "masked_row":
            assert all(
                is_finite([record.get("input_args"), record.get("input")]) for record in found.values()
            )
    if level != "L0":
        for arrival in case.arrivals:
            names = records(step, arrival.rank).items()
            assert any(
                named(arrival.operation, name) and not is_finite(value["output"]) for name, value in names
            )


@pytest.mark.parametrize(("case", "level"), BAD)
def test_births(case: Case, level: str, asked: Asked) -> None:
    answer = asked(case.name, level)
    expected = case.births[level]
    births = answer.report["births"]
    told = [(birth["rank"], birth["operation"], birth["kind"]) for birth in births]
    assert answer.report["status"] == "anomaly"
    assert answer.code == 1
    assert len(told) == len(expected), told
    for birth, born in zip(births, expected):
        check(birth, born)
    assert answer.report["culprit"] == births[0]


def check(birth: dict[str, Any], born: Born) -> None:
    told = (birth["rank"], birth["operation"], birth["kind"])
    assert birth["rank"] == born.rank, told
    assert named(born.operation, birth["operation"]), told
    assert re.fullmatch(born.kind, birth["kind"]), told
    assert birth["phase"] == born.phase
    assert set(birth["values"]) == set(born.values)
    if born.parameter is not None:
        assert birth["parameter"] == born.parameter
    if born.modules:
        assert birth["modules"] == list(born.modules)
    assert birth["reason"]


@pytest.mark.parametrize(("case", "level"), BAD)
def test_evidence(case: Case, level: str, asked: Asked, corpus: Path) -> None:
    """The stack leads to the line of the fault, and the statistics are those of the dump."""
    step = step_directory(corpus, level, case.name)
    for birth, born in zip(asked(case.name, level).report["births"], case.births[level]):
        record = records(step, born.rank)[birth["operation"]]
        assert any(born.mark in comment(frame) for frame in birth["stack"]), birth["stack"]
        for side, keys in (
            ("inputs", ("input_args", "input_kwargs", "input", "parameters")),
            ("outputs", ("output",)),
        ):
            expected = [figures(tensor) for key in keys for tensor in tensors(record.get(key))]
            assert sorted(figures(value) for value in birth[side] if value.get("dtype")) == sorted(expected)


def comment(frame: str) -> str:
    """What is remarked at the end of the source line of a frame."""
    return frame.rpartition("#")[2] if "#" in frame else ""


def tensors(value: Any) -> list[dict[str, Any]]:
    """Every tensor encoded anywhere below."""
    if isinstance(value, dict):
        if "Max" in value:
            return [value]
        return [found for item in value.values() for found in tensors(item)]
    return [found for item in value for found in tensors(item)] if isinstance(value, list) else []


def figures(value: dict[str, Any]) -> tuple[str, ...]:
    """A tensor as words that can be compared and sorted."""
    numbers = [value[key] for key in ("Max", "Min", "Mean", "Norm")]
    texts = [str(number if number is None else float(number)) for number in numbers]
    return (value["dtype"], str(value["shape"]), *texts)


@pytest.mark.parametrize(("case", "level"), LINKED)
def test_arrivals(case: Case, level: str, asked: Asked) -> None:
    spread = asked(case.name, level).report["spread"]
    for arrival in case.arrivals:
        assert any(matches(entry, arrival) for entry in spread), (arrival, spread)


def matches(entry: dict[str, Any], arrival: Arrival) -> bool:
    places = (entry["rank"], entry["from_rank"]) == (arrival.rank, arrival.from_rank)
    return places and named(arrival.operation, entry["operation"])


@pytest.mark.parametrize(("case", "level"), CLEAN)
def test_nothing_is_blamed(case: Case, level: str, asked: Asked) -> None:
    answer = asked(case.name, level)
    assert answer.report["births"] == []
    assert answer.report["culprit"] is None
    assert answer.report["status"] in ("clean", "warning")
    assert answer.code == 0


@pytest.mark.parametrize(("case", "level"), ALL)
def test_what_is_harmless(case: Case, level: str, asked: Asked) -> None:
    """Masks and buffers are named as such on every rank, and nothing is where nothing is."""
    harmless = asked(case.name, level).report["harmless"]
    for pattern in case.harmless.get(level, ()):
        for rank in range(case.world):
            found = [
                entry for entry in harmless if entry["rank"] == rank and named(pattern, entry["operation"])
            ]
            assert found, (rank, pattern, harmless)
            assert all(entry["count"] >= 1 for entry in found)
    births = {(born.rank, born.operation) for born in case.births[level]}
    assert not births & {(entry["rank"], entry["operation"]) for entry in harmless}


@pytest.mark.parametrize(("case", "level"), ALL)
def test_ranks_are_told(case: Case, level: str, asked: Asked, corpus: Path) -> None:
    step = step_directory(corpus, level, case.name)
    report = asked(case.name, level).report
    assert report["schema"] == 1
    assert report["problems"] == []
    assert [entry["rank"] for entry in report["ranks"]] == list(range(case.world))
    for entry in report["ranks"]:
        assert entry["level"] == level
        assert entry["records"] == len(records(step, entry["rank"]))
        assert entry["problems"] == []
    for born in case.births[level]:
        assert report["ranks"][born.rank]["anomalies"] > 0


def test_elements_of_tensors(asked: Asked) -> None:
    """Where values were kept, they are counted: NaN, Inf, and the first of them."""
    culprit = asked("counted_elements", "L1").report["culprit"]
    counted = [entry for entry in culprit["elements"] if entry["nan"] or entry["inf"] or entry["-inf"]]
    assert len(counted) == 1
    found = counted[0]
    assert (found["elements"], found["nan"], found["inf"], found["-inf"]) == (8, 2, 0, 1)
    assert found["first_bad"] == [0, 2]
