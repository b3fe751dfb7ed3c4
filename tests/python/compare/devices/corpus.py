"""Makes the pairs of trainings and scores the comparison on them.

    python -m tests.python.compare.devices.corpus make ROOT [--half tuning|held_out] [--only PART] [--mode M]
    python -m tests.python.compare.devices.corpus score ROOT [--binary PATH] [--only PART] [--mode M]

A case lies in ``ROOT/CASE/MODE/{golden,target}``; ``ROOT/manifest.json`` lists what is there and what has to
come out. What is there already is not made again. Limits of the comparison are tuned on one half of the
cases only; figures are those of the other half.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..faults import dumps
from . import names
from .cases import HALVES, Case, all_cases

PROJECT = Path(__file__).parents[4]
TIMEOUT_SECS = 3600
COMPARE_SECS = 300
MODES = ("L0-statistics", "mix-statistics", "L0-tensor", "mix-tensor", "L0-sketch", "mix-sketch")
# The level that knows which function runs in which module; expected names of all levels follow from it.
NAMING = "mix-statistics"

_PASSING = ("identical", "within_tolerance", "incomplete")


# ---- making


def make(root: Path, cases: Sequence[Case], modes: Sequence[str], jobs: int = 2) -> list[dict[str, Any]]:
    """Trains, and returns the manifest of all that is there."""
    root.mkdir(parents=True, exist_ok=True)
    wanted = list(dict.fromkeys([NAMING, *modes]))
    if any(mode.endswith("sketch") for mode in wanted) and not has_sketch():
        print("fingerprints are not known to this version and are left out", file=sys.stderr)
        wanted = [mode for mode in wanted if not mode.endswith("sketch")]
    work = []
    for mode in wanted:
        for module, world in (("worker", 1), ("ranks", 2)):
            chosen = [case.name for case in cases if case.world == world and not is_made(root, case, mode)]
            if chosen:
                work.append([module, str(root), mode, *chosen])
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(_run, work))
    return write_manifest(root)


def is_made(root: Path, case: Case, mode: str) -> bool:
    return all((root / case.name / mode / side).exists() for side in ("golden", "target"))


def write_manifest(root: Path) -> list[dict[str, Any]]:
    entries = [each for case in all_cases() if is_made(root, case, NAMING) for each in entries_of(root, case)]
    (root / "manifest.json").write_text(json.dumps(entries, indent=1))
    return entries


def entries_of(root: Path, case: Case) -> list[dict[str, Any]]:
    """What to compare in each mode, and what has to come out."""
    expected = case.expected
    rank = None if expected is None else expected.rank
    sides = []
    if expected is not None:
        for side in ("target", "golden"):
            sides.append(dumps.read(dumps.directory(root / case.name / NAMING / side, 0, rank)))
    entries = []
    for mode in MODES:
        if not is_made(root, case, mode):
            continue
        level, _, task = mode.partition("-")
        entries.append(
            {
                "case": case.name,
                "model": case.model,
                "dtype": case.dtype,
                "variant": case.variant,
                "fault": case.fault,
                "half": case.half,
                "mode": mode,
                "is_fault": case.is_fault,
                "target": str(Path(case.name, mode, "target")),
                "golden": str(Path(case.name, mode, "golden")),
                "culprit": [] if expected is None else names.accepted(expected, sides, level, task),
                "rank": rank,
            }
        )
    return entries


def has_sketch() -> bool:
    """Whether statistics can have fingerprints."""
    probe = (
        "import sys, torch; from pathlib import Path; from tests.python.compare.devices import worker;"
        "d = worker.make_debugger(Path(sys.argv[1]), 'L0-sketch');"
        "m = torch.nn.Sequential(torch.nn.Linear(2, 2));"
        "worker.collect(d, Path(sys.argv[1]) / 'run', m, lambda: m(torch.ones(1, 2)))"
    )
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-c", probe, folder],
            cwd=PROJECT,
            env=_environment(),
            capture_output=True,
            check=False,
        )
        found = list(Path(folder).rglob("dump.json"))
        return bool(found) and "sketch" in found[0].read_text().lower()


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "MSPROBE_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}


def _run(arguments: list[str]) -> None:
    module, *rest = arguments
    result = subprocess.run(
        [sys.executable, "-m", f"{__package__}.{module}", *rest],
        env=_environment(),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    if result.returncode != 0 or "[ERROR]" in result.stdout:
        raise RuntimeError(
            f"{' '.join(arguments[:3])}: exit {result.returncode}\n"
            f"{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
        )


# ---- scoring


@dataclass(frozen=True)
class Score:
    """One comparison, and what it said."""

    entry: dict[str, Any]
    status: str
    culprit: str | None
    rank: int | None

    @property
    def outcome(self) -> str:
        if not self.entry["is_fault"]:
            is_quiet = self.status in _PASSING and self.culprit is None
            return "right" if is_quiet else "false alarm"
        if self.culprit not in self.entry["culprit"]:
            return "wrong"
        if self.entry["rank"] is not None and self.rank != self.entry["rank"]:
            return "wrong"
        return "right"

    @property
    def line(self) -> str:
        expected = self.entry["culprit"][0] if self.entry["culprit"] else "nothing"
        if self.entry["rank"] is not None:
            expected += f" in rank {self.entry['rank']}"
        told = f"{self.status} {self.culprit or ''}".strip()
        if self.rank is not None and self.entry["rank"] is not None:
            told += f" in rank {self.rank}"
        return f"{self.entry['mode']} {self.entry['case']}: {self.outcome}, expected {expected}, told {told}"


def compare(root: Path, one: dict[str, Any], binary: Path) -> Score:
    with tempfile.TemporaryDirectory() as out:
        command = [str(binary), "compare", "-tp", str(root / one["target"]), "-gp", str(root / one["golden"])]
        result = subprocess.run(
            [*command, "-o", out, "--format", "json"],
            capture_output=True,
            text=True,
            timeout=COMPARE_SECS,
            check=False,
        )
        found = sorted(Path(out).rglob("verdict.json"))
        if len(found) != 1:
            return Score(one, f"failed: {result.stderr.strip()[-200:]}", None, None)
        verdict = json.loads(found[0].read_text())
    return Score(one, verdict["status"], verdict.get("culprit"), verdict.get("rank"))


def score(root: Path, entries: Sequence[dict[str, Any]], binary: Path) -> list[Score]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda one: compare(root, one, binary), entries))


def score_reference(root: Path, entries: Sequence[dict[str, Any]], python: Path) -> list[Score]:
    """The first row the reference flags, in all ranks."""
    requests, owners = [], []
    for index, one in enumerate(entries):
        for rank in sorted((root / one["target"] / "step0").iterdir()):
            golden = root / one["golden"] / "step0" / rank.name
            requests.append([str(rank / "dump.json"), str(golden / "dump.json")])
            owners.append((index, int(rank.name.removeprefix("rank") or 0)))
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "requests.json"), Path(folder, "results.json")
        asked.write_text(json.dumps(requests))
        command = [str(python), "-m", f"{__package__}.reference", str(asked), str(answered)]
        subprocess.run(command, cwd=PROJECT, env=_environment(), capture_output=True, check=True)
        answers = json.loads(answered.read_text())
    told: dict[int, Score] = {}
    for (index, rank), answer in zip(owners, answers):
        if index not in told or told[index].culprit is None:
            status = "identical" if answer is None else "flagged"
            told[index] = Score(entries[index], status, answer, rank)
    return list(told.values())


def table(scores: Sequence[Score], key: str) -> str:
    """Counts by one property of the cases."""
    rows = [(key, "healthy", "quiet", "false alarms", "faults", "right", "wrong", "right %")]
    for value in [*dict.fromkeys(one.entry[key] for one in scores), "all"]:
        chosen = [one for one in scores if value in (one.entry[key], "all")]
        healthy = [one for one in chosen if not one.entry["is_fault"]]
        faults = [one for one in chosen if one.entry["is_fault"]]
        alarms = sum(one.outcome != "right" for one in healthy)
        right = sum(one.outcome == "right" for one in faults)
        share = f"{100 * right / len(faults):.1f}" if faults else "-"
        counts = (len(healthy), len(healthy) - alarms, alarms, len(faults), right, len(faults) - right)
        rows.append((value, *map(str, counts), share))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


# ---- command line


def _chosen(values: Iterable[str], only: Sequence[str]) -> list[str]:
    return [value for value in values if not only or any(part in value for part in only)]


def _make(options: argparse.Namespace) -> int:
    kept = set(_chosen((case.name for case in all_cases()), options.only))
    cases = [case for case in all_cases() if case.name in kept and options.half in (None, case.half)]
    manifest = make(options.root.resolve(), cases, options.mode or MODES, options.jobs)
    print(f"{len(manifest)} pairs in {options.root}")
    return 0


def _score(options: argparse.Namespace) -> int:
    entries = [
        one
        for one in json.loads((options.root / "manifest.json").read_text())
        if options.half in (None, one["half"])
        and (not options.mode or one["mode"] in options.mode)
        and _chosen([one["case"]], options.only)
    ]
    if options.reference:
        entries = [one for one in entries if not one["mode"].endswith("sketch")]
        scores = score_reference(options.root.resolve(), entries, options.reference)
    else:
        scores = score(options.root, entries, options.binary)
    results = [
        {**one.entry, "status": one.status, "told": one.culprit, "outcome": one.outcome} for one in scores
    ]
    name = "score_reference.json" if options.reference else "score.json"
    (options.root / name).write_text(json.dumps(results, indent=1))
    for key in ("mode", "variant", "model", "dtype", "fault"):
        print(table(scores, key), end="\n\n")
    for one in scores:
        if one.outcome != "right":
            print(one.line)
    return int(any(one.outcome != "right" for one in scores))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("make")
    making.add_argument("--jobs", type=int, default=2, help="processes at a time")
    making.set_defaults(run=_make)
    scoring = commands.add_parser("score")
    default = os.environ.get("MSPROBE_BIN") or PROJECT / "target" / "release" / "msprobe"
    scoring.add_argument("--binary", type=Path, default=Path(default))
    reference = PROJECT / ".venv-reference" / "bin" / "python"
    scoring.add_argument(
        "--reference", type=Path, nargs="?", const=reference, help="score the reference, with its Python"
    )
    scoring.set_defaults(run=_score)
    for command in (making, scoring):
        command.add_argument("root", type=Path)
        command.add_argument("--half", choices=HALVES)
        command.add_argument("--only", action="append", default=[], help="part of a case's name")
        command.add_argument("--mode", action="append", choices=MODES)
    options = parser.parse_args()
    result: int = options.run(options)
    return result


if __name__ == "__main__":
    sys.exit(main())
