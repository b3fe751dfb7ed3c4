"""Where a recorded comparison is not what we write: one row per cell, file, log line or exit code, and why.

Each row names a defect of the reference. It states the recorded value and ours; applying it checks that the
record has the one and that the other is different, so a row that no longer holds fails.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from tests.python.compare.tables import (
    DIFFERENCE_OF,
    NAN_REASON,
    STATISTIC_OF,
    STATISTICS,
    ZERO_D,
    Table,
    Value,
)

NULL = "what a null statistic shows does not depend on the other rows of the table: always `None` and `N/A`"
NAN = "a NaN among maximum and minimum colours its row, as the manual says"
ZERO_D_ARRAY = "an array without dimensions costs the metrics of its own row, not the whole table"
FUZZY_MD5 = "fuzzy matching keeps the checksums"
ENVIRONMENT = "the message is about the recording machine"
DIFFERENT = "a comparison that finds differences exits with 1 (the old command line keeps 0)"
FAILED_RANK = "a rank that could not be compared shows in the exit code"

FILL = "fill"


@dataclass(frozen=True)
class CellDeviation:
    """A cell, or with the column `fill` the colour of a row."""

    case: str
    file: str
    row: str
    column: str
    recorded: Value
    ours: Value
    why: str

    def apply(self, table: Table) -> Table:
        """The table as expected."""
        assert self.recorded != self.ours, f"{self} is no deviation"
        table = copy.deepcopy(table)
        rows = [index for index, row in enumerate(table.rows) if row[0] == self.row]
        assert len(rows) == 1, f"{self.case}: {self.row} is in {len(rows)} recorded rows"
        if self.column == FILL:
            assert table.fills[rows[0]] == self.recorded, f"{self}: recorded is {table.fills[rows[0]]!r}"
            table.fills[rows[0]] = str(self.ours)
            return table
        position = table.header.index(self.column)
        found = table.rows[rows[0]][position]
        assert found == self.recorded, f"{self}: recorded is {found!r}"
        table.rows[rows[0]][position] = self.ours
        return table


def _null(case: str, row: str, *, message: str | None, diffs: bool) -> list[CellDeviation]:
    """A row of nulls on both sides, which the reference turns into NaN when a column has no texts.

    `message` is what the row says without the colour.
    """
    file = "compare_result.xlsx"
    cells: list[tuple[str, Value, Value]] = [
        (f"{side} {statistic}", "nan\t", "None") for side in ("NPU", "Bench") for statistic in STATISTICS
    ]
    if diffs:
        cells += [(column, "Nan", "N/A") for column in [*DIFFERENCE_OF, *STATISTIC_OF]]
    said = NAN_REASON if message is None else f"{message}\n{NAN_REASON}"
    cells += [("Err_message", said, message), (FILL, "red", "")]
    return [CellDeviation(case, file, row, *cell, NULL) for cell in cells]


def _nan(case: str, row: str, recorded: str | None = None, ours: str | None = None) -> list[CellDeviation]:
    """A row with `Nan` among NPU max and NPU min."""
    file = "compare_result.xlsx"
    reason = NAN_REASON if recorded is None else f"{ours or recorded}\n{NAN_REASON}"
    return [
        CellDeviation(case, file, row, "Err_message", recorded, reason, NAN),
        CellDeviation(case, file, row, FILL, "", "red", NAN),
    ]


def _md5(row: str, npu: str, bench: str, result: str) -> list[CellDeviation]:
    case, file = "errors/fuzzy_md5", "compare_result.xlsx"
    cells = [("NPU MD5", "nan\t", npu), ("BENCH MD5", "nan\t", bench)]
    if result != "Different":
        cells.append(("Result", "Different", result))
    return [CellDeviation(case, file, row, *cell, FUZZY_MD5) for cell in cells]


_NO_NUMBER = (
    "Cannot compare by MaxAbsError, the data contains nan/inf/-inf in dump data."
    "Cannot compare by MaxRelativeError, the data contains nan/inf/-inf in dump data."
)
_POSITION = "The position of inf or nan in NPU and bench Tensor do not match."
_UNMATCHED = "No bench data matched."

CELLS: list[CellDeviation] = [
    *_null("statistics_none_coercion", "Torch.a.0.forward.input.1", message=None, diffs=True),
    *_null("statistics_none_coercion", "Torch.a.0.forward.input.2", message=None, diffs=True),
    *_null("statistics_real_mix", "Functional.linear.1.forward.input.2", message=None, diffs=True),
    *_null("statistics_real_mix", "Torch.ones_like.0.forward.input.memory_format", message=None, diffs=True),
    *_null("statistics_real_mix", "Tensor.__mul__.0.backward.output.1", message=None, diffs=True),
    *_null("statistics_real_mix", "Functional.linear.0.backward.output.1", message=None, diffs=True),
    *_null("tensor_real_l1_stack", "Functional.linear.1.forward.input.2", message=_UNMATCHED, diffs=False),
    *_null("tensor_real_l1_stack", "Tensor.__mul__.0.backward.output.1", message=_UNMATCHED, diffs=False),
    *_nan("statistics_edge", "Torch.naninf.0.forward.input.0"),
    *_nan("statistics_edge", "Torch.naninf.0.forward.output.0"),
    *_nan(
        "tensor_edge",
        "Torch.zerod.0.forward.output.0",
        (f"{ZERO_D} " * 4 + _NO_NUMBER) * 4,
        f"{ZERO_D} {_NO_NUMBER}",
    ),
    *_nan("tensor_edge", "Torch.naninf.0.forward.input.0"),
    *_nan("tensor_edge", "Torch.naninf.0.forward.input.1", _POSITION),
    *_md5("Torch.a.0.forward.input.0", "aaaa", "aaaa", "pass"),
    *_md5("Torch.a.0.forward.output.0", "bbbb", "cccc", "Different"),
]


@dataclass(frozen=True)
class FileDeviation:
    """A csv file whose contents are others: the recorded lines and ours, split into cells."""

    case: str
    file: str
    recorded: list[list[str]]
    ours: list[list[str]]
    why: str

    def apply(self, table: Table) -> Table:
        lines = [table.header, *table.rows] if table.header else []
        assert lines == self.recorded, f"{self.file}: recorded is {lines}"
        assert self.recorded != self.ours, f"{self.file} is no deviation"
        header, *rows = self.ours
        changed = copy.copy(table)
        changed.header, changed.rows = list(header), [list(row) for row in rows]
        changed.fills = [""] * len(rows)
        return changed


_COMMON_HEADER = [
    *("Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape"),
    *("Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr"),
    *("One Thousandth Err Ratio", "Five Thousandths Err Ratio"),
    *(f"{side} {statistic}" for side in ("NPU", "Bench") for statistic in STATISTICS),
    *("Accuracy Reached or Not", "Err_message", "Data_name"),
]

FILES: list[FileDeviation] = [
    FileDeviation(
        "ms_common_dir",
        "step1/rank0/result.csv",
        [],
        [
            _COMMON_HEADER,
            [
                *("k_0", "float32", "float32", "()", "()"),
                *("unsupported", "unsupported", "0.5", "0.20000000298", "unsupported", "unsupported"),
                *("3.0", "3.0", "3.0", "3.0", "2.5", "2.5", "2.5", "2.5"),
                *("None", f"{ZERO_D} "),
                "['npu/step1/rank0/k_float32_3.npy', 'bench/step1/rank0/k_float32_3.npy']",
            ],
        ],
        ZERO_D_ARRAY,
    )
]


@dataclass(frozen=True)
class LogDeviation:
    """A recorded warning or error that has no reason with us; or, with `ours`, is another."""

    case: str
    recorded: str
    why: str
    ours: str | None = None

    def apply(self, log: list[str]) -> list[str]:
        assert self.recorded in log, f"{self.case}: {self.recorded!r} is not recorded"
        assert self.recorded != self.ours, f"{self} is no deviation"
        position = log.index(self.recorded)
        return [*log[:position], *([self.ours] if self.ours else []), *log[position + 1 :]]


LOGS: list[LogDeviation] = [
    LogDeviation(
        "newest_first_diff",
        "[ERROR] Please verify that the CANN environment is properly configured.",
        ENVIRONMENT,
    ),
    LogDeviation(
        "newest_statistics",
        "[ERROR] Please verify that the CANN environment is properly configured.",
        ENVIRONMENT,
    ),
    LogDeviation(
        "ms_common_dir",
        "[ERROR] multiprocess compare failed! Reason: len() of unsized object",
        ZERO_D_ARRAY,
    ),
    LogDeviation(
        "ms_common_dir",
        "[ERROR] _Main process error: len() of unsized object",
        ZERO_D_ARRAY,
    ),
    LogDeviation(
        "errors/fuzzy_md5",
        "[WARNING] Find Torch.a.0.forward.input.0 accuracy not reached, the line is 0",
        FUZZY_MD5,
        ours="[WARNING] Find Torch.a.0.forward.output.0 accuracy not reached, the line is 1",
    ),
]


@dataclass(frozen=True)
class ExitDeviation:
    case: str
    recorded: int
    ours: int
    why: str


EXITS: list[ExitDeviation] = [
    ExitDeviation("newest_first_diff", 0, 1, DIFFERENT),
    ExitDeviation("newest_statistics", 0, 1, DIFFERENT),
    ExitDeviation("errors/dist_one_rank_bad_task", 0, 1, FAILED_RANK),
]


@dataclass(frozen=True)
class TextDeviation:
    """An advisor file with another text."""

    case: str
    file: str
    recorded: str
    ours: str
    why: str

    def apply(self, text: str) -> str:
        assert self.recorded in text, f"{self.case}: {self.recorded!r} is not recorded"
        assert self.recorded != self.ours, f"{self} is no deviation"
        return text.replace(self.recorded, self.ours)


_INPUT_ADVICE = (
    "1. Analyze the model to view the input source.\n"
    "2. Check whether an inplace API causes the output result to overwrite the input result. "
    "That is, the fault is actually caused by a computation error.\n"
    "3. The fault may be caused by memory corruption and further analysis is required.\n"
)

TEXTS: list[TextDeviation] = [
    TextDeviation(
        "errors/fuzzy_md5",
        "advisor.txt",
        f"Line: 0\nSuspect Nodes: Torch.a.0.forward.input.0\nExpert Advice: {_INPUT_ADVICE}",
        "Line: 1\nSuspect Nodes: Torch.a.0.forward.output.0\nExpert Advice: "
        "This is a forward API computation error. Check the computation implementation.\n",
        FUZZY_MD5,
    )
]
