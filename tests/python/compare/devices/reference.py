"""What the reference flags first on the pairs of the corpus.

Run by ``corpus.py`` with the Python of the reference:
python -m tests.python.compare.devices.reference REQUESTS RESULTS

Requests are lists of two ``dump.json``; a result is the record of the first row that is red or whose accuracy
was not reached, null if there is none, or "failed: …". Nothing here may import our own package.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

RED = "FFFF0000"
_RECORD = re.compile(
    r"(Module\..+?\.(?:forward|backward)\.\d+|Module\..+?\.parameters_grad|.+?\.(?:forward|backward))(?:\.|$)"
)


def first_flagged(table: Path) -> str | None:
    """The record of the first flagged row."""
    sheet = importlib.import_module("openpyxl").load_workbook(table).active
    rows = sheet.iter_rows()
    header = [cell.value for cell in next(rows)]
    judged = [i for i, name in enumerate(header) if name in ("Accuracy Reached or Not", "Result")]
    for row in rows:
        is_red = row[0].fill.fill_type == "solid" and row[0].fill.fgColor.rgb == RED
        if is_red or any(row[i].value in ("No", "Warning") for i in judged):
            match = _RECORD.match(str(row[0].value))
            return match[1] if match else str(row[0].value)
    return None


def compare(target: str, golden: str) -> str | None:
    compare_files: Any = importlib.import_module("msprobe.pytorch").compare
    with tempfile.TemporaryDirectory() as out:
        paths = {"npu_json_path": target, "bench_json_path": golden, "is_print_compare_log": False}
        compare_files(paths, out, auto_analyze=False)
        return first_flagged(next(Path(out).glob("*.xlsx")))


def main(requests: str, results: str) -> None:
    answers: list[str | None] = []
    for target, golden in json.loads(Path(requests).read_text()):
        try:
            answers.append(compare(target, golden))
        # Whatever it dies of is its answer.
        except BaseException as error:
            answers.append(f"failed: {type(error).__name__} {error}")
    Path(results).write_text(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
