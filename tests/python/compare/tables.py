"""Result tables read back with a real reader, and compared cell by cell within the tolerances of the format.

A table just written is held against a recorded one. Texts, cell types and fills must be equal; numbers may
differ as far as the recorded program's own arithmetic is good for.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

import openpyxl  # type: ignore[import-untyped]

Value = Union[None, bool, int, float, str]
Row = list[Value]

STATISTICS = ("max", "min", "mean", "l2norm")
STATISTIC_CELLS = {f"{side} {statistic}" for side in ("NPU", "Bench") for statistic in STATISTICS}
DIFFERENCE_OF = {"Max diff": "max", "Min diff": "min", "Mean diff": "mean", "L2norm diff": "l2norm"}
STATISTIC_OF = {
    "MaxRelativeErr": "max",
    "MinRelativeErr": "min",
    "MeanRelativeErr": "mean",
    "NormRelativeErr": "l2norm",
}
METRICS = {
    "Cosine",
    "EucDist",
    "MaxAbsErr",
    "MaxRelativeErr",
    "One Thousandth Err Ratio",
    "Five Thousandths Err Ratio",
}

# Numbers are written with 16 digits, or with as many as they need.
WRITTEN = 1e-15
# The recorded program reads numbers back from text with a parser of about twelve digits.
DIFFERENCE = 2e-12
PERCENT = 1e-9
METRIC = 1e-9
# Sums over a tensor of the dtype, added up in whatever order.
SUMMED = {"float16": 4e-3, "float32": 2e-6}

NAN_REASON = "maximum or minimum is nan, -inf, or inf"
REASONS = {
    NAN_REASON,
    "maximum absolute error exceeds 1e+10",
    "maximum absolute error of both input/parameters and output exceed 1, "
    "with the output larger by an order of magnitude",
    "The input/parameter's one thousandth err ratio exceeds 0.9, while the output's is below 0.6",
    "The output's one thousandth err ratio decreases by more than 0.1 compared to the input/parameter's",
    "The output's cosine decreases by more than 0.1 compared to the input/parameter's",
    "maximum relative error exceeds 0.5",
    "The output's maximum relative error exceeds 0.1, while the input/parameter's is below 0.01",
}
ZERO_D = (
    "This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One Thousandth Err Ratio' "
    "and 'Five Thousandths Err Ratio'."
)
COLOURS = {"FF0000": "red", "FFFF00": "yellow"}


@dataclass
class Table:
    """One sheet, or one csv file."""

    name: str
    header: list[str]
    rows: list[Row]
    fills: list[str] = field(default_factory=list)
    # In a csv file everything is text, and numbers are found by looking.
    texts: bool = False
    # The statistics were measured by the comparison itself, not taken from a dump.
    measured: bool = False
    # The order of the rows is that of a directory listing.
    unordered: bool = False
    # The recorded numbers carry the noise of the reference's parser: what is made of a small difference may
    # be as far off as the difference, and a rounded metric may fall on the other side.
    noisy: bool = False

    def column(self, name: str) -> list[Value]:
        index = self.header.index(name)
        return [row[index] for row in self.rows]

    def record(self, index: int) -> dict[str, Value]:
        return dict(zip(self.header, self.rows[index]))


# Reading


def _value(cell: openpyxl.cell.Cell) -> Value:
    assert cell.data_type not in ("f", "e"), f"{cell.coordinate} is a formula or an error: {cell.value!r}"
    value: Value = cell.value
    assert value is None or isinstance(value, (bool, int, float, str)), f"{cell.coordinate}: {value!r}"
    return None if value == "" else value


def _fill(cells: tuple[openpyxl.cell.Cell, ...]) -> str:
    found = set()
    for cell in cells:
        if cell.fill.fill_type is None:
            found.add("")
        else:
            colour = str(cell.fill.fgColor.rgb)[-6:]
            found.add(COLOURS.get(colour, f"{cell.fill.fill_type} {colour}"))
    return found.pop() if len(found) == 1 else f"mixed {sorted(found)}"


def read_xlsx(path: Path) -> list[Table]:
    """All sheets, in order."""
    tables = []
    for sheet in openpyxl.load_workbook(path).worksheets:
        lines = list(sheet.iter_rows())
        assert lines, f"{path.name}: sheet {sheet.title} has no header"
        fills = [_fill(cells) for cells in lines]
        assert fills[0] == "", f"{path.name}: the header of sheet {sheet.title} is filled"
        header = [str(cell.value) for cell in lines[0]]
        rows = [[_value(cell) for cell in cells] for cells in lines[1:]]
        tables.append(Table(sheet.title, header, rows, fills[1:]))
    return tables


def read_csv(path: Path) -> Table:
    """A csv file; one without a header line has an empty header."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = [line for line in csv.reader(file) if line]
    header = lines[0] if lines else []
    rows: list[Row] = [list(line) for line in lines[1:]]
    return Table(path.name, header, rows, [""] * len(rows), texts=True)


# Comparing one cell


def kind(value: Value) -> str:
    """The letter the recorded renderings use for the type of a cell."""
    if value is None:
        return "e"
    if isinstance(value, bool):
        return "b"
    return "s" if isinstance(value, str) else "n"


def number(value: Value) -> float | None:
    """The number a cell holds, also as text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None


def close(expected: float, actual: float, tolerance: float) -> bool:
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    if math.isinf(expected) or math.isinf(actual):
        return expected == actual
    return abs(expected - actual) <= tolerance


def message_lines(text: Value) -> list[str]:
    """The messages of a row, each once: what is said about a row does not depend on how often."""
    lines: list[str] = []
    for line in str(text or "").split("\n"):
        if ZERO_D in line:
            # The recorded program appends the whole text to itself for each metric it can not give.
            rest = line.replace(ZERO_D, " ")
            lines += [ZERO_D, *re.split(r"(?<=\.)\s*(?=[A-Z])", rest.strip())]
        else:
            lines.append(line)
    return list(dict.fromkeys(line for line in lines if line))


def _message_difference(expected: Value, actual: Value) -> bool:
    ours, theirs = message_lines(actual), message_lines(expected)
    if set(ours) != set(theirs):
        return True
    # A message comes before the reasons of the colour.
    return bool(theirs) and theirs[0] not in REASONS and ours[0] != theirs[0]


def _percent(value: Value) -> float | None:
    if isinstance(value, str) and value.endswith("%"):
        return number(value[:-1])
    return None


def _percent_tolerance(table: Table, column: str, expected: dict[str, Value], value: float) -> float:
    tolerance = PERCENT * abs(value)
    if table.noisy and column in STATISTIC_OF:
        statistic = STATISTIC_OF[column]
        npu, bench = (number(expected.get(f"{side} {statistic}")) for side in ("NPU", "Bench"))
        if npu is not None and bench:
            tolerance += 100 * DIFFERENCE * max(abs(npu), abs(bench)) / abs(bench)
    return tolerance


def _tolerance(table: Table, column: str, expected: dict[str, Value], value: float) -> float:
    if column in DIFFERENCE_OF:
        sides = [number(expected.get(f"{side} {DIFFERENCE_OF[column]}")) for side in ("NPU", "Bench")]
        return DIFFERENCE * max((abs(side) for side in sides if side is not None), default=0.0)
    if column in METRICS:
        step = (1e-6 if column == "Cosine" and value > 0.9999 else 1e-12) if table.noisy else 0.0
        return METRIC * abs(value) + 1.01 * step
    if column in STATISTIC_CELLS and table.measured and column.endswith(("mean", "l2norm")):
        dtype = str(expected.get(column.split()[0] + " Dtype"))
        return SUMMED.get(dtype, METRIC) * abs(value)
    return WRITTEN * abs(value)


def cell_differs(table: Table, column: str, expected: dict[str, Value], actual: Value) -> bool:
    """Whether a cell is not what the recorded row has in that column."""
    wanted = expected[column]
    if column == "Err_message" and not table.texts:
        return kind(wanted) != kind(actual) or _message_difference(wanted, actual)
    if kind(wanted) != kind(actual):
        return True
    if wanted == actual:
        return False
    if column == "Err_message":
        return _message_difference(wanted, actual)
    wanted_percent, percent = _percent(wanted), _percent(actual)
    if wanted_percent is not None and percent is not None:
        # `0.0%` says that nothing differs, `inf%` and `nan%` are words.
        if ("0.0%" in (wanted, actual) and not table.noisy) or not math.isfinite(wanted_percent):
            return True
        return not close(wanted_percent, percent, _percent_tolerance(table, column, expected, wanted_percent))
    if kind(wanted) == "s" and not table.texts:
        return True
    first, second = number(wanted), number(actual)
    if first is None or second is None:
        return True
    if table.texts and first == second:
        # The same number in another spelling.
        return True
    return not close(first, second, _tolerance(table, column, expected, first))


# Comparing tables


def _row_differences(expected: Table, i: int, actual: Table, j: int) -> list[str]:
    wanted, found = expected.record(i), actual.record(j)
    name = next(iter(wanted.values()))
    differences = [
        f"row {i} {name}: {column}: expected {wanted[column]!r}, found {found[column]!r}"
        for column in expected.header
        if cell_differs(expected, column, wanted, found[column])
    ]
    if expected.fills[i] != actual.fills[j]:
        differences.append(
            f"row {i} {name}: fill: expected {expected.fills[i] or 'none'}, found {actual.fills[j] or 'none'}"
        )
    return differences


def _unordered_differences(expected: Table, actual: Table) -> list[str]:
    differences = []
    left = list(range(len(actual.rows)))
    for i in range(len(expected.rows)):
        match = next((j for j in left if not _row_differences(expected, i, actual, j)), None)
        if match is not None:
            left.remove(match)
            continue
        same_name = [j for j in left if actual.rows[j][:2] == expected.rows[i][:2]]
        near = [line for j in same_name[:1] for line in _row_differences(expected, i, actual, j)]
        differences += near or [f"row {i} is missing: {expected.rows[i]}"]
        left = [j for j in left if j not in same_name[:1]]
    return differences + [f"row {j} is too many: {actual.rows[j]}" for j in left]


def _names(table: Table) -> list[tuple[Value, ...]]:
    width = 2 if table.header[1:2] == ["Bench Name"] else 1
    return [tuple(row[:width]) for row in table.rows]


def compare_tables(expected: Table, actual: Table) -> list[str]:
    """What differs, one line for each cell."""
    if expected.header != actual.header:
        return [f"header: expected {expected.header}, found {actual.header}"]
    ragged = [j for j, row in enumerate(actual.rows) if len(row) != len(actual.header)]
    if ragged:
        return [f"rows {ragged} have not as many cells as the header"]
    if expected.unordered:
        return _unordered_differences(expected, actual)
    matcher = difflib.SequenceMatcher(None, _names(expected), _names(actual), autojunk=False)
    differences = []
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            for i, j in zip(range(first, last), range(start, end)):
                differences += _row_differences(expected, i, actual, j)
        else:
            differences += [f"row {i} is missing: {_names(expected)[i]}" for i in range(first, last)]
            differences += [f"row {j} is too many: {_names(actual)[j]}" for j in range(start, end)]
    return differences


def compare_sheets(expected: list[Table], actual: list[Table]) -> list[str]:
    """The recorded sheets against our first ones; what follows them is ours."""
    names = [table.name for table in expected]
    found = [table.name for table in actual[: len(expected)]]
    if names != found:
        return [f"sheets: expected {names}, found {[table.name for table in actual]}"]
    return [
        (f"{theirs.name}: " if len(expected) > 1 else "") + line
        for theirs, ours in zip(expected, actual)
        for line in compare_tables(theirs, ours)
    ]


def compare_documents(expected: object, actual: object, where: str = "") -> list[str]:
    """Two parsed JSON documents: same keys in the same order, same texts, numbers as in tables."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if list(expected) != list(actual):
            return [f"{where}: keys: expected {list(expected)}, found {list(actual)}"]
        return [
            line
            for key in expected
            for line in compare_documents(expected[key], actual[key], f"{where}/{key}")
        ]
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return [f"{where}: expected {len(expected)} elements, found {len(actual)}"]
        return [
            line
            for index, pair in enumerate(zip(expected, actual))
            for line in compare_documents(*pair, f"{where}/{index}")
        ]
    if type(expected) is not type(actual) or not _same_leaf(expected, actual):
        return [f"{where}: expected {expected!r}, found {actual!r}"]
    return []


def _same_leaf(expected: object, actual: object) -> bool:
    if isinstance(expected, float) and isinstance(actual, float):
        return close(expected, actual, DIFFERENCE * abs(expected))
    if expected == actual or not isinstance(expected, str) or not isinstance(actual, str):
        return expected == actual
    both_percent = expected.endswith("%") and actual.endswith("%")
    first, second = (number(text[:-1] if both_percent else text) for text in (expected, actual))
    if first is None or second is None or first == second:
        return False
    return close(first, second, PERCENT * abs(first))
