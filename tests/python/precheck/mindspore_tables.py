"""Tables of MindSpore's check against recorded ones."""

from __future__ import annotations

import math
from pathlib import Path

from tests.python.precheck.running import rows_of, tables

_NUMBERS = slice(4, 7)
_LOOSE = ("exp", "sin", "matmul")


def same_tables(out: Path, expected: Path, tolerance: float) -> None:
    """Rows, order, statuses and messages are equal; numbers within the tolerance, or 1e-6."""
    found = tables(out)
    assert found.result_bytes == (expected / "accuracy_checking_result.csv").read_bytes()
    wanted = rows_of(expected / "accuracy_checking_details.csv")
    assert len(found.details) == len(wanted)
    for row, want in zip(found.details, wanted):
        assert row[:4] + row[7:] == want[:4] + want[7:]
        if row == want:
            continue
        allowed = 1e-6 if row[0].split(".")[1] in _LOOSE else tolerance
        for cell, other in zip(row[_NUMBERS], want[_NUMBERS]):
            assert (cell == "") == (other == ""), row
            if cell and not (math.isnan(float(cell)) and math.isnan(float(other))):
                assert math.isclose(float(cell), float(other), rel_tol=allowed, abs_tol=allowed * 10), row
