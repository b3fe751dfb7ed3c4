"""``run_ut`` against recorded cases of the reference."""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from msprobe import _native
from msprobe.pytorch.api_accuracy_checker.run_ut import run_overflow_check as overflow
from msprobe.pytorch.api_accuracy_checker.run_ut.multi_run_ut import split_json_file
from msprobe.pytorch.precheck import functions
from tests.python.precheck.running import GOLDEN, Tables, rows_of, run_ut, tables

SPACE = " "
_FIRST_NUMBER, _STATUS = 4, 21
_NUMBERS = slice(_FIRST_NUMBER, _STATUS)
_ULP = {18, 19, 20}
DRAWN_SHAPES = {"Tensor.masked_select.0.forward.output.0"}
"""How many elements it selects follows from the mask that is drawn."""


def same_tables(found: Tables, expected: Path, numbers: Any, suffix: str = "") -> None:
    """Rows, order, statuses, messages and which cells are filled; numbers as the case allows."""
    result = expected / f"accuracy_checking_result{suffix}.csv"
    details = expected / f"accuracy_checking_details{suffix}.csv"
    assert found.result_bytes == result.read_bytes()
    wanted = rows_of(details)
    assert [row[0] for row in found.details] == [row[0] for row in wanted]
    for row, want in zip(found.details, wanted):
        known = _FIRST_NUMBER - 1 if row[0] in DRAWN_SHAPES else _FIRST_NUMBER
        assert row[:known] == want[:known], row
        assert row[_STATUS:] == want[_STATUS:], row
        assert [cell == SPACE for cell in row] == [cell == SPACE for cell in want], row
        if row == wanted[0]:
            continue
        for column, (cell, other) in enumerate(zip(row[_NUMBERS], want[_NUMBERS]), start=_FIRST_NUMBER):
            if cell != SPACE:
                assert numbers(float(cell), float(other), column), (row[0], column, cell, other)


def about_equal(found: float, expected: float, column: int) -> bool:
    """Of real inputs: sums may be added in another order by another build of PyTorch."""
    if math.isnan(expected):
        return math.isnan(found)
    if column in _ULP:
        return found == expected or 0.2 < (found + 1e-3) / (expected + 1e-3) < 5.0
    return math.isclose(found, expected, rel_tol=0.7 if expected < 1e-3 else 1e-3, abs_tol=2e-6)


def of_like_size(found: float, expected: float, _column: int) -> bool:
    """Of random inputs: the reference drew others for all but the first API."""
    if math.isnan(expected):
        return math.isnan(found)
    return 0.0 <= abs(found) <= max(1.0, 50 * abs(expected)) if expected else abs(found) < 300


def error_files(directory: Path) -> list[str]:
    (folder,) = directory.glob("ut_error_data*")
    assert re.fullmatch(r"ut_error_data\d{14}", folder.name)
    return sorted(path.name for path in folder.iterdir())


def test_real_inputs(tmp_path: Path) -> None:
    case = GOLDEN / "run_ut_real_data"
    ended = run_ut(
        "-api_info", case / "dump" / "dump.json", "-o", "out", "-save_error_data", "-d", "cpu", cwd=tmp_path
    )
    assert ended.code == 0, ended
    same_tables(tables(tmp_path / "out"), case / "expected", about_equal)
    expected = (case / "expected" / "error_data_files.txt").read_text().split()
    assert error_files(tmp_path) == sorted(expected)
    (folder,) = tmp_path.glob("ut_error_data*")
    for path in folder.iterdir():
        assert isinstance(torch.load(path, weights_only=True), torch.Tensor)
        assert path.stat().st_mode & 0o777 == 0o640


def test_inputs_of_statistics(tmp_path: Path) -> None:
    case = GOLDEN / "run_ut_statistics"
    ended = run_ut(
        "-api_info", case / "dump.json", "-o", "out", "-save_error_data", "-d", "cpu", cwd=tmp_path
    )
    assert ended.code == 0, ended
    same_tables(tables(tmp_path / "out"), case / "expected", of_like_size)
    expected = (case / "expected" / "error_data_files.txt").read_text().split()
    assert error_files(tmp_path) == sorted(expected)


def test_filter_configuration_and_resume(tmp_path: Path) -> None:
    case = GOLDEN / "run_ut_resume_config"
    shutil.copytree(case, tmp_path / "case")
    before = tmp_path / "case" / "before"
    stem = "accuracy_checking_result_20250101000000.csv"
    ended = run_ut(
        *("-api_info", "dump.json", "-f", "-config", "config.json", "-csv_path", before / stem),
        *("-save_error_data", "-d", "cpu"),
        cwd=tmp_path / "case",
    )
    assert ended.code in (0, 1), ended
    same_tables(tables(before), case / "expected", of_like_size, "_20250101000000")


def test_filter_and_split(tmp_path: Path) -> None:
    case = GOLDEN / "filter_and_split"
    expected = json.loads((case / "expected.json").read_text())
    dump = tmp_path / "dump.json"
    shutil.copy(case / "dump.json", dump)
    assert _native.PrecheckPlan(dump, "pytorch", True).names() == expected["kept"]
    assert _native.PrecheckPlan(dump, "pytorch", False).names() == expected["all"]
    for key, want in expected["split"].items():
        is_filtered, count = re.fullmatch(r"filter=(True|False),n=(\d+)", key).groups()  # type: ignore[union-attr]
        parts, total = split_json_file(str(dump), int(count), is_filtered == "True")
        assert total == want["total"]
        assert [
            {"name": Path(part).name, "keys": list(json.loads(Path(part).read_text())["data"])}
            for part in parts
        ] == want["files"]
        for part in parts:
            Path(part).unlink()


STAND_IN: dict[str, Callable[[Any], Any]] = {
    "exp": torch.nan_to_num,
    "div": torch.nan_to_num,
    "tanh": lambda x: x * math.inf,
}
"""The device of the recorded case: the CPU, with other results of three functions."""


def test_overflow_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = functions.find_device_function

    def on_stand_in(kind: str, name: str, device: str) -> Any:
        function = find(kind, name, device)
        change = STAND_IN.get(name)
        if function is None or change is None:
            return function
        return lambda *args, **kwargs: change(function(*args, **kwargs))

    monkeypatch.setattr("msprobe.pytorch.precheck.execute.find_device_function", on_stand_in)
    parser = argparse.ArgumentParser()
    overflow._run_overflow_check_parser(parser)
    case = GOLDEN / "overflow_check"
    code = overflow._run_overflow_check_command(
        parser.parse_args(["-api_info", str(case / "dump.json"), "-d", "cpu"])
    )
    lines = [re.sub(r"^.*?\) \[", "[", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == (case / "expected_log.txt").read_text().splitlines()
    assert code == 1
