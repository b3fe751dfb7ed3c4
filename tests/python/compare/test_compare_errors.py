"""Inputs that can not be compared are refused as recorded; those the reference wrongly fails on work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Callable

import pytest

from tests.python.compare.golden_cases import Case, Outcome, errors, missing_lines, run
from tests.python.compare.tables import Table, Value, read_xlsx

SCENARIOS = {case.name.removeprefix("errors/"): case for case in errors()}
# Their files are compared in test_golden_compare.py.
WITH_FILES = {name for name, case in SCENARIOS.items() if (case.folder / "expected").is_dir()}
# The reference fails on these; with us they work, or fail cleanly.
MENDED = {
    "structure_task",
    "special_char_value",
    "module_named_input",
    "numeric_string_value",
    "fuzzy_statistics",
}
WITHOUT_RESULT = {"empty_npu"}
BROKEN = {"broken_json"}
REFUSED = sorted(set(SCENARIOS) - WITH_FILES - MENDED - WITHOUT_RESULT - BROKEN)

CODE = re.compile(r"CompareException\(code=(\d+)\)")
# An error ends a command line with 2; the reference has 1, like any Python program with a traceback.
USAGE_OR_INPUT = 2
FUZZY = " Fuzzy matching data, the comparison accuracy may be affected."

Run = Callable[[str], Outcome]


@pytest.fixture
def ran(tmp_path: Path) -> Run:
    return lambda name: run(SCENARIOS[name], tmp_path.resolve() / "run")


def refused(case: Case, outcome: Outcome, code: int) -> None:
    """Ended by a CompareException of the code: as an exception, or as the exit code of a command."""
    if outcome.exception is None:
        assert outcome.exit_code == USAGE_OR_INPUT, outcome.text
        assert "Traceback" not in outcome.text
        assert "panicked" not in outcome.text
    else:
        from msprobe.core.common.utils import CompareException

        assert isinstance(outcome.exception, CompareException), repr(outcome.exception)
        assert outcome.exception.code == code
        assert case.call["via"] == "func"
    assert not [file for file in outcome.outputs() if file.endswith((".xlsx", ".txt"))]


def result(outcome: Outcome) -> Table:
    assert outcome.exception is None, repr(outcome.exception)
    assert outcome.exit_code == 0, outcome.text
    outputs = outcome.outputs()
    assert {"compare_result.xlsx", "advisor.txt"} <= set(outputs), outcome.text
    return read_xlsx(outputs["compare_result.xlsx"])[0]


def expect(table: Table, row: int, **cells: Value) -> None:
    """Cells by their column names, with `_` for a blank."""
    record = table.record(row)
    for key, value in cells.items():
        assert record[key.replace("_", " ")] == value, (row, key)


def expect_matched(table: Table, row: int, npu: str, bench: str) -> None:
    """The tensor all these dumps are made of, equal on both sides."""
    expect(table, row, NPU_Name=npu, Bench_Name=bench, NPU_Dtype="torch.float32", Bench_Dtype="torch.float32")
    expect(table, row, NPU_Tensor_Shape="[2, 3]", Bench_Tensor_Shape="[2, 3]", Result=None)
    expect(table, row, Max_diff=0, Min_diff=0, Mean_diff=0, L2norm_diff=0)
    expect(table, row, MaxRelativeErr="0.0%", MinRelativeErr="0.0%", MeanRelativeErr="0.0%")
    expect(table, row, NormRelativeErr="0.0%", NPU_max=1, NPU_min=-1, NPU_mean=0.1, NPU_l2norm=2)
    expect(table, row, Bench_max=1, Bench_min=-1, Bench_mean=0.1, Bench_l2norm=2)
    message = table.record(row)["Err_message"]
    assert message is None or (npu != bench and message == FUZZY), message
    assert table.fills[row] == ""


def expect_unmatched(table: Table, row: int, npu: str) -> None:
    expect(table, row, NPU_Name=npu, Bench_Name="N/A", Bench_Dtype="N/A", Bench_Tensor_Shape="N/A")
    expect(table, row, Max_diff="N/A", Min_diff="N/A", Mean_diff="N/A", L2norm_diff="N/A")
    expect(table, row, MaxRelativeErr="N/A", MinRelativeErr="N/A", MeanRelativeErr="N/A")
    expect(table, row, NormRelativeErr="N/A", Bench_max="N/A", Bench_min="N/A", Bench_mean="N/A")
    expect(table, row, Bench_l2norm="N/A", Result="N/A")
    assert table.record(row)["Err_message"] == "No bench data matched."
    assert table.fills[row] == ""


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, ran: Run) -> None:
    case = SCENARIOS[name]
    recorded = CODE.fullmatch(case.exception)
    assert recorded is not None and case.exit_code == 1, "the record is of a refusal"
    outcome = ran(name)
    refused(case, outcome, int(recorded[1]))
    missing = missing_lines(list(case.log), outcome.log)
    assert not missing, "\n".join(["missing:", *missing, "found:", outcome.text])


def test_broken_json(ran: Run) -> None:
    case = SCENARIOS["broken_json"]
    outcome = ran("broken_json")
    if outcome.exception is None:
        assert outcome.exit_code == USAGE_OR_INPUT, outcome.text
    else:
        assert isinstance(outcome.exception, RuntimeError), repr(outcome.exception)
        assert f"RuntimeError: {outcome.exception}" == case.exception
    assert not missing_lines(list(case.log), outcome.log), outcome.text
    assert not outcome.outputs()


def test_nothing_to_compare(ran: Run) -> None:
    case = SCENARIOS["empty_npu"]
    outcome = ran("empty_npu")
    assert outcome.exception is None and outcome.exit_code == case.exit_code == 0, outcome.text
    assert not missing_lines(list(case.log), outcome.log), outcome.text
    assert not [file for file in outcome.outputs() if file.endswith((".xlsx", ".txt"))]


def test_structure_task(ran: Run) -> None:
    """Nothing was measured, so there is nothing to compare; the reference dies of a KeyError."""
    case = SCENARIOS["structure_task"]
    assert case.exception == "KeyError: 'structure'"
    outcome = ran("structure_task")
    refused(case, outcome, 20)
    assert not missing_lines(
        [
            "[ERROR] Compare applies only to task is tensor or statistics",
            "[ERROR] Compare failed. Please check the arguments and do it again!",
        ],
        outcome.log,
    ), outcome.text


def test_formula_like_value(ran: Run) -> None:
    """The dump is compared; the text that a spreadsheet could take for a formula is a text, and reported."""
    assert CODE.fullmatch(SCENARIOS["special_char_value"].exception)
    outcome = ran("special_char_value")
    table = result(outcome)
    assert not missing_lines(
        ["[WARNING] data info of Torch.a.0.forward contains special characters, please check!"], outcome.log
    ), outcome.text
    assert len(table.rows) == 2
    expect_unmatched(table, 0, "Torch.a.0.forward.input.0")
    expect(table, 0, NPU_Dtype="<class 'str'>", NPU_Tensor_Shape="[]")
    for statistic in ("max", "min", "mean", "l2norm"):
        # The reader refuses formulas, so this is words either way.
        assert table.record(0)[f"NPU {statistic}"] in ("=1+1", "'=1+1")
    expect_matched(table, 1, "Torch.a.0.forward.output.0", "Torch.a.0.forward.output.0")


def test_layer_called_input(ran: Run) -> None:
    assert CODE.fullmatch(SCENARIOS["module_named_input"].exception)
    table = result(ran("module_named_input"))
    names = [f"Module.input.Linear.forward.0.{side}.0" for side in ("input", "output")]
    assert table.column("NPU Name") == names
    for row, name in enumerate(names):
        expect_matched(table, row, name, name)


def test_value_that_looks_like_a_number(ran: Run) -> None:
    assert SCENARIOS["numeric_string_value"].exception.startswith("TypeError")
    table = result(ran("numeric_string_value"))
    assert len(table.rows) == 2
    name = "Torch.a.0.forward.input.0"
    expect(table, 0, NPU_Name=name, Bench_Name=name, NPU_Dtype="<class 'str'>", Bench_Dtype="<class 'str'>")
    expect(table, 0, Max_diff="N/A", Min_diff="N/A", Mean_diff="N/A", L2norm_diff="N/A", Result=None)
    expect(table, 0, MaxRelativeErr="N/A", MinRelativeErr="N/A", MeanRelativeErr="N/A", NormRelativeErr="N/A")
    for side in ("NPU", "Bench"):
        for statistic in ("max", "min", "mean", "l2norm"):
            assert table.record(0)[f"{side} {statistic}"] == "3"
    expect_matched(table, 1, "Torch.a.0.forward.output.0", "Torch.a.0.forward.output.0")


def test_fuzzy_statistics(ran: Run) -> None:
    """The same pairs as with tensors; the reference dies of the first row without a partner."""
    assert SCENARIOS["fuzzy_statistics"].exception.startswith("ValueError")
    table = result(ran("fuzzy_statistics"))
    assert len(table.rows) == 4
    for row, side in enumerate(("input", "output")):
        expect_matched(table, row, f"Torch.a.0.forward.{side}.0", f"Torch.a.1.forward.{side}.0")
        expect_unmatched(table, row + 2, f"Torch.x.0.forward.{side}.0")
