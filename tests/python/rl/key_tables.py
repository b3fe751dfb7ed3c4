"""Tables of key data, read back with a real reader."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]

GOLDEN = Path(__file__).parents[2] / "golden" / "rl_collect"
TOLERANCE = 1e-12


def read_workbook(path: Path) -> tuple[list[str], list[list[Any]]]:
    """The names of the sheets, and header and rows of the first one."""
    book = openpyxl.load_workbook(path)
    return book.sheetnames, [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]


def as_text(cell: Any) -> str:
    """A cell as the recorded csv files have it."""
    return "" if cell is None else str(cell)


def read_csv(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def same_cell(actual: Any, expected: str, tolerance: float = TOLERANCE) -> bool:
    """Whether two cells say the same: numbers within the tolerance, anything else to the letter."""
    text = as_text(actual)
    try:
        a, b = float(text), float(expected)
    except ValueError:
        return text == expected
    return a == b or (math.isfinite(a) and math.isclose(a, b, rel_tol=tolerance))


def differences(
    actual: list[list[Any]], expected: list[list[str]], tolerance: float = TOLERANCE
) -> list[str]:
    """What is wrong with a table, in words; nothing if all is well."""
    if len(actual) != len(expected):
        return [f"{len(actual)} rows instead of {len(expected)}"]
    wrong = []
    for number, (row, wanted) in enumerate(zip(actual, expected)):
        same = (same_cell(cell, text, tolerance) for cell, text in zip(row, wanted))
        if len(row) != len(wanted) or not all(same):
            wrong.append(f"row {number}: {[as_text(cell) for cell in row]} instead of {wanted}")
    return wrong
