"""Recorded comparisons of key data: every table of every case, through ``SingleComparator.compare``."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from msprobe.core.single_save.single_comparator import SingleComparator

from .key_tables import GOLDEN, differences, read_csv, read_workbook

# Two files share one place in these; the recorded row is that of either.
UNDEFINED = {("containers_and_errors", "d"): {0}, ("native_dtypes", "ids"): {0}}
# Where the number of dimensions differs we do what the newest version does.
NEWEST = {"shape_mismatch"}

CASES = [(case.parent.name, "dump_a", "dump_b", "compare") for case in sorted(GOLDEN.glob("*/compare"))]
CASES.append(("end_to_end", "key_a", "key_b", "key_compare"))


def compare_case(case: str, sides: tuple[str, str], where: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs a recorded case in a copy of it, with the relative paths of the record."""
    for side in sides:
        shutil.copytree(GOLDEN / case / side, where / side)
    monkeypatch.chdir(where)
    SingleComparator.compare(sides[0], sides[1], "out")
    return where / "out"


def without_ids(rows: list[list[Any]], ids: set[int]) -> list[list[Any]]:
    return [row for row in rows if str(row[3]) not in {str(number) for number in ids}]


@pytest.mark.parametrize(("case", "first", "second", "recorded"), CASES, ids=[case[0] for case in CASES])
def test_recorded_tables(
    case: str, first: str, second: str, recorded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = compare_case(case, (first, second), tmp_path, monkeypatch)
    folder = GOLDEN / case / (f"{recorded}_newest" if case in NEWEST else recorded)
    expected = {path.stem: path for path in folder.glob("*.csv")}
    assert expected
    assert set(expected) <= {path.stem for path in output.glob("*.xlsx")}
    wrong = []
    for key, path in expected.items():
        sheets, rows = read_workbook(output / f"{key}.xlsx")
        assert sheets == ["Sheet1"]
        skipped = UNDEFINED.get((case, key), set())
        found = differences(without_ids(rows, skipped), without_ids(read_csv(path), skipped))
        wrong += [f"{key}: {text}" for text in found]
    assert not wrong, "\n".join(wrong)


def test_every_key_has_a_table_and_nothing_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = compare_case("containers_and_errors", ("dump_a", "dump_b"), tmp_path, monkeypatch)
    tables = {path.stem for path in output.glob("*.xlsx")} - {"summary"}
    recorded = GOLDEN / "containers_and_errors" / "compare"
    assert tables == {path.stem for path in recorded.glob("*.xlsx")}


@pytest.mark.parametrize("case", ["native_dtypes", "shape_mismatch"])
def test_recorded_messages(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare_case(case, ("dump_a", "dump_b"), tmp_path, monkeypatch)
    said = re.findall(r"\[ERROR\] (.*)", capsys.readouterr().out)
    recorded = (GOLDEN / case / "compare_errors.txt").read_text(encoding="utf-8").splitlines()
    expected = {line.removeprefix("ERROR] ") for line in recorded}
    if case in NEWEST:
        # Nothing fails any more where the number of dimensions differs.
        assert not said
    else:
        assert sorted(said) == sorted(expected)


def test_the_workbook_has_the_digits_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not within a tolerance: what is read back is the same number."""
    output = compare_case("dtypes", ("dump_a", "dump_b"), tmp_path, monkeypatch)
    for recorded in (GOLDEN / "dtypes" / "compare").glob("*.xlsx"):
        assert read_workbook(output / recorded.name)[1] == read_workbook(recorded)[1], recorded.name
