"""The reader and the comparison of tables themselves: they see what is recorded, and what differs."""

from __future__ import annotations

import copy
import csv
import gzip
import io
from pathlib import Path
from typing import Callable

import openpyxl  # type: ignore[import-untyped]
import pytest

from tests.python.compare import deviations, differential, tables
from tests.python.compare.golden_cases import GOLDEN, missing_lines
from tests.python.compare.tables import Table, compare_documents, compare_tables, kind, read_xlsx

WORKBOOKS = sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("expected/*.xlsx"))


def rendering(book: Path, sheet: str, sheets: int) -> list[list[str]]:
    """The csv that was recorded beside a workbook."""
    stem = book.stem if sheets == 1 else f"{book.stem}.{sheet.replace(' ', '_')}"
    plain, packed = book.with_name(f"{stem}.csv"), book.with_name(f"{stem}.csv.gz")
    text = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    return list(csv.reader(io.StringIO(text.decode(), newline="")))


def as_text(value: tables.Value) -> str:
    if isinstance(value, float):
        return f"{value:.16g}"
    return "" if value is None else str(value)


@pytest.mark.parametrize("name", WORKBOOKS)
def test_reader_sees_what_was_recorded(name: str) -> None:
    """Texts, types and colours of a workbook are those of the rendering made when it was recorded."""
    sheets = read_xlsx(GOLDEN / name)
    for table in sheets:
        header, *lines = rendering(GOLDEN / name, table.name, len(sheets))
        assert header == [*table.header, "__highlight__", "__types__"]
        assert len(lines) == len(table.rows)
        for line, row, fill in zip(lines, table.rows, table.fills):
            assert line[-1] == "".join(map(kind, row))
            assert line[-2] == fill
            for text, value in zip(line, row):
                if isinstance(value, float):
                    assert float(text) == pytest.approx(value, rel=1e-15)
                else:
                    assert text == as_text(value)


def recorded(name: str) -> Table:
    return read_xlsx(GOLDEN / name / "expected" / "compare_result.xlsx")[0]


def put(row: int, column: str, value: tables.Value) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        position = table.header.index(column)
        assert table.rows[row][position] != value, "no change"
        table.rows[row][position] = value

    return change


def fill(row: int, colour: str) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        assert table.fills[row] != colour, "no change"
        table.fills[row] = colour

    return change


def drop(row: int) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        del table.rows[row], table.fills[row]

    return change


def swap(table: Table) -> None:
    table.rows[0], table.rows[1] = table.rows[1], table.rows[0]


def rename(table: Table) -> None:
    table.header[3] = table.header[3].lower()


@pytest.mark.parametrize(
    "change",
    [
        put(0, "Max diff", 0.5 + 1e-11),
        put(0, "Max diff", "0.5"),
        put(0, "Max diff", None),
        put(0, "MaxRelativeErr", "50.000001%"),
        put(0, "MinRelativeErr", "1e-20%"),
        put(0, "MinRelativeErr", "0%"),
        put(0, "NPU max", 1.5000000000001),
        put(0, "NPU Name", "Torch.plain.1.forward.input.0"),
        put(0, "Result", ""),
        put(0, "Err_message", "Need double check api accuracy."),
        put(2, "NPU max", "N/A"),
        put(13, "Max diff", "nan\t"),
        put(14, "NPU max", "inf"),
        put(15, "Err_message", "Need double check api accuracy."),
        put(15, "Err_message", f"{tables.NAN_REASON}\nNeed double check api accuracy."),
        fill(0, "red"),
        fill(15, "yellow"),
        fill(15, ""),
        fill(15, "mixed ['', 'red']"),
        drop(3),
        drop(49),
        swap,
        rename,
    ],
)
def test_statistics_differences_are_seen(change: Callable[[Table], None]) -> None:
    table = recorded("statistics_edge")
    changed = copy.deepcopy(table)
    assert not compare_tables(table, changed)
    change(changed)
    assert compare_tables(table, changed)


@pytest.mark.parametrize(
    "change",
    [
        put(0, "Max diff", 0.5 + 2e-12),
        put(0, "MaxRelativeErr", "50.00000001%"),
        put(0, "NPU max", 1.500000000000001),
        put(21, "Err_message", "Need double check api accuracy.\nmaximum relative error exceeds 0.5"),
    ],
)
def test_tolerances(change: Callable[[Table], None]) -> None:
    table = recorded("statistics_edge")
    changed = copy.deepcopy(table)
    change(changed)
    assert not compare_tables(table, changed)


def test_metrics_of_tensors() -> None:
    table = recorded("tensor_edge")
    metric = table.header.index("EucDist")
    row = next(i for i, cells in enumerate(table.rows) if isinstance(cells[metric], float))
    value = table.rows[row][metric]
    assert isinstance(value, float)
    for factor, differs in ((1 + 1e-10, False), (1 + 1e-8, True)):
        changed = copy.deepcopy(table)
        changed.rows[row][metric] = value * factor
        assert bool(compare_tables(table, changed)) is differs


def test_repeated_messages_collapse() -> None:
    table = recorded("tensor_edge")
    column = table.header.index("Err_message")
    rows = [i for i, cells in enumerate(table.rows) if tables.ZERO_D in str(cells[column])]
    assert len(rows) == 5
    changed = copy.deepcopy(table)
    for row in rows[:-1]:
        changed.rows[row][column] = tables.ZERO_D
    assert not compare_tables(table, changed)
    # The last one has more to say.
    changed.rows[rows[-1]][column] = tables.ZERO_D
    assert len(compare_tables(table, changed)) == 1


def test_rows_in_any_order() -> None:
    table = read_xlsx(GOLDEN / "ms_graph_statistic" / "expected" / "compare_result_0_1.xlsx")[0]
    turned = copy.deepcopy(table)
    turned.rows.reverse()
    assert compare_tables(table, turned)
    table.unordered = True
    assert not compare_tables(table, turned)
    turned.rows[0] = list(turned.rows[1])
    assert compare_tables(table, turned)


def test_numbers_in_text() -> None:
    table = tables.read_csv(GOLDEN / "newest_statistics" / "expected" / "compare_result.csv")
    column = table.header.index("L2norm diff")
    row = next(i for i, cells in enumerate(table.rows) if cells[column] == "0.020000000000000018")
    for text, differs in (("0.02", False), ("0.0200001", True), ("Nan", True), ("2e-2", False)):
        changed = copy.deepcopy(table)
        changed.rows[row][column] = text
        assert bool(compare_tables(table, changed)) is differs, text
    changed = copy.deepcopy(table)
    changed.rows[0][column] = "0.0"
    assert compare_tables(table, changed), "the same number in another spelling"


def test_formulas_are_refused(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["NPU Name"])
    book.active.append(["=1+1"])
    book.save(tmp_path / "book.xlsx")
    with pytest.raises(AssertionError, match="A2"):
        read_xlsx(tmp_path / "book.xlsx")


def test_documents() -> None:
    document = {"a": [1.0, "1.5%", None, True], "b": "x"}
    assert not compare_documents(document, {"a": [1.0 + 1e-13, "1.5000000001%", None, True], "b": "x"})
    others = [
        {"b": "x", "a": [1.0, "1.5%", None, True]},
        {"a": [1, "1.5%", None, True], "b": "x"},
        {"a": [1.0, "1.6%", None, True], "b": "x"},
        {"a": [1.0, "1.5", None, True], "b": "x"},
        {"a": [1.0, "1.5%", False, True], "b": "x"},
        {"a": [1.0, "1.5%", None], "b": "x"},
    ]
    for other in others:
        assert compare_documents(document, other), other


def test_log_lines_in_order() -> None:
    assert not missing_lines(["a", "b", "b"], ["x", "a", "b", "x", "b"])
    assert missing_lines(["a", "b"], ["b", "a"]) == ["b"]
    assert missing_lines(["a", "a"], ["a"]) == ["a"]


MENDED = [
    "statistics_none_coercion",
    "statistics_real_mix",
    "statistics_edge",
    "tensor_real_l1_stack",
    "tensor_edge",
]


@pytest.mark.parametrize("name", MENDED)
def test_differential_runs_expect_the_deviations(name: str) -> None:
    """What random runs expect instead of the reference's rows is what is listed for the recorded ones."""
    expected = recorded(name)
    for row in deviations.CELLS:
        if row.case == name:
            expected = row.apply(expected)
    mended = recorded(name)
    assert compare_tables(expected, mended), "the case has no deviations"
    differential.mend(mended, colours=True)
    assert not compare_tables(expected, mended)
