"""Runs the comparison on every pair of a generated corpus and judges its ``verdict.json``.

    python -m tests.python.compare.faults.score DIR [--msprobe PATH] [--case C] [--level L] [--task T]

The binary is ``--msprobe``, else the environment's ``MSPROBE_BIN``, else ``target/debug/msprobe``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
TIMEOUT_SECS = 300

_PASSING = ("identical", "within_tolerance")
# Clean pairs may make other calls on purpose: fused ones, an identity more.
_EXPECTED_GAPS = ["--allow-incomplete", "unpaired,dtype"]


@dataclass(frozen=True)
class Score:
    """One comparison: what was expected, what it said, and whether that is right."""

    entry: dict[str, Any]
    verdict: dict[str, Any]
    exit_code: int
    # Empty if all is well.
    wrong: str

    @property
    def ok(self) -> bool:
        return not self.wrong

    @property
    def key(self) -> str:
        return f"{self.entry['case']}-{self.entry['level']}-{self.entry['task']}"


def binary() -> Path:
    return Path(os.environ.get("MSPROBE_BIN") or ROOT / "target" / "debug" / "msprobe")


def compare(root: Path, entry: dict[str, Any], msprobe: Path, more: Sequence[str] | None = None) -> Score:
    """Compares the two sides of an entry of the index and judges the answer."""
    if more is None:
        more = [] if entry["is_fault"] else _EXPECTED_GAPS
    with tempfile.TemporaryDirectory() as out:
        command = [
            str(msprobe),
            "compare",
            "-tp",
            str(root / entry["target"]),
            "-gp",
            str(root / entry["golden"]),
        ]
        result = subprocess.run(
            [*command, "-o", out, "--format", "json", *more],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECS,
            check=False,
        )
        found = sorted(Path(out).rglob("verdict.json"))
        if len(found) != 1:
            wrong = f"{len(found)} verdict.json, exit {result.returncode}: {result.stderr.strip()[-300:]}"
            return Score(entry, {}, result.returncode, wrong)
        verdict = json.loads(found[0].read_text())
    return Score(entry, verdict, result.returncode, judge(entry, verdict, result.returncode))


def judge(entry: dict[str, Any], verdict: dict[str, Any], exit_code: int) -> str:
    """What is wrong with a verdict, or nothing."""
    expected = entry["expected"]
    status = verdict.get("status")
    if status not in expected["status"]:
        return f"status {status}, not {' or '.join(expected['status'])}"
    if exit_code != (0 if status in _PASSING else 1):
        return f"exit code {exit_code} with status {status}"
    if not expected["culprit"] or (status == "differs_at_input" and verdict.get("culprit") is None):
        return ""
    for key, right in (("culprit", expected["culprit"]), ("direction", [expected["direction"]])):
        if verdict.get(key) not in right:
            return f"{key} {verdict.get(key)}"
    if entry["steps"] > 1 and verdict.get("step") != expected["step"]:
        return f"step {verdict.get('step')}, not {expected['step']}"
    if expected["rank"] is not None and verdict.get("rank") != expected["rank"]:
        return f"rank {verdict.get('rank')}, not {expected['rank']}"
    return ""


def score(root: Path, entries: Sequence[dict[str, Any]], msprobe: Path) -> list[Score]:
    """All comparisons, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda entry: compare(root, entry, msprobe), entries))


def table(scores: Sequence[Score]) -> str:
    rows = [("case", "level", "task", "expected", "got", "ok")]
    for one in scores:
        expected = one.entry["expected"]
        got = f"{one.verdict.get('status')} {one.verdict.get('culprit') or ''}".strip()
        rows.append(
            (
                one.entry["case"],
                one.entry["level"],
                one.entry["task"],
                (expected["culprit"] or ["/".join(expected["status"])])[0],
                got,
                "ok" if one.ok else f"WRONG: {one.wrong}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join("  ".join([*map(str.ljust, row, widths), row[5]]) for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--msprobe", type=Path, default=binary())
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--level")
    parser.add_argument("--task")
    parser.add_argument("--wrong", action="store_true", help="only print what is wrong")
    options = parser.parse_args()
    entries = [
        entry
        for entry in json.loads((options.corpus / "index.json").read_text())
        if options.level in (None, entry["level"])
        and options.task in (None, entry["task"])
        and (not options.case or entry["case"] in options.case)
    ]
    scores = score(options.corpus, entries, options.msprobe)
    print(table([one for one in scores if not (options.wrong and one.ok)]))
    right = sum(one.ok for one in scores)
    alarms = sum(not one.ok for one in scores if not one.entry["is_fault"])
    print(f"\n{right} of {len(scores)} right, {alarms} false alarms on clean pairs")
    return int(right != len(scores))


if __name__ == "__main__":
    sys.exit(main())
