"""Trains and collects every case, and writes ``index.json``: what belongs together and what is expected.

    python -m tests.python.compare.faults.generate --out DIR [--case NAME] [--level mix] [--task statistics]

A case lies in ``DIR/LEVEL-TASK/target/CASE/step0/rank/dump.json``; cases that have the same good training
share it, in ``DIR/LEVEL-TASK/golden/…``. Level mix with statistics is always there: it tells which function
runs in which module, from which the expected names of the other levels follow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import dumps
from .faults import Case, all_cases

ROOT = Path(__file__).parents[4]
TIMEOUT_SECS = 1200

COMBINATIONS = (
    ("mix", "statistics"),
    ("mix", "tensor"),
    ("mix", "md5"),
    ("L0", "statistics"),
    ("L1", "statistics"),
)


def generate(
    out: Path, combinations: Sequence[tuple[str, str]] = COMBINATIONS, names: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Runs the trainings, two processes at a time, and returns the index."""
    out.mkdir(parents=True, exist_ok=True)
    wanted = list(dict.fromkeys([("mix", "statistics"), *combinations]))
    cases = [case for case in all_cases() if not names or case.name in names]
    jobs = [["worker", str(out), level, task, *names] for level, task in wanted]
    for level, task in wanted:
        if any(case.world > 1 and level in case.levels and task in case.tasks for case in cases):
            jobs.append(["ranks", str(out), level, task, *names])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(_run, jobs))
    index = [
        entry(out, case, level, task)
        for level, task in wanted
        for case in cases
        if level in case.levels and task in case.tasks
    ]
    (out / "index.json").write_text(json.dumps(index, indent=1))
    return index


def entry(out: Path, case: Case, level: str, task: str) -> dict[str, Any]:
    """What to compare, and what has to come out."""
    expected = case.expected
    return {
        "case": case.name,
        "model": case.model,
        "level": level,
        "task": task,
        "is_fault": case.is_fault,
        "target": str(Path(f"{level}-{task}", "target", case.name)),
        "golden": str(Path(f"{level}-{task}", "golden", case.golden_key)),
        "is_reshaped": case.is_reshaped,
        "steps": case.steps,
        "world": case.world,
        "expected": {
            "status": list(expected.status),
            "culprit": culprits(out, case, level, task),
            "direction": expected.direction if expected.where is not None else None,
            "step": expected.step if case.is_fault else None,
            "rank": expected.rank,
        },
    }


def culprits(out: Path, case: Case, level: str, task: str) -> list[str]:
    """The names that are right at a level."""
    expected = case.expected
    if expected.where is None:
        return []
    base = out / "mix-statistics"
    target = dumps.read(dumps.directory(base / "target" / case.name, expected.step, expected.rank))
    golden = dumps.read(dumps.directory(base / "golden" / case.golden_key, expected.step, expected.rank))
    names = dumps.names_of(expected, target, golden, task)
    kept = [name for name in names if level == "mix" or dumps.is_module(name) == (level == "L0")]
    assert kept, f"{case.name}: no record of level {level} can show the fault"
    return kept


def _run(arguments: list[str]) -> None:
    module, *rest = arguments
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = subprocess.run(
        [sys.executable, "-m", f"{__package__}.{module}", *rest],
        env={**os.environ, "PYTHONPATH": path, "MSPROBE_LOG_LEVEL": "3"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    if result.returncode != 0 or "[ERROR]" in result.stdout:
        raise RuntimeError(
            f"{' '.join(arguments)}: exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--case", action="append", default=[], help="only these cases")
    parser.add_argument("--level", choices=("mix", "L0", "L1"))
    parser.add_argument("--task", choices=("statistics", "tensor", "md5"))
    options = parser.parse_args()
    chosen = [
        (level, task)
        for level, task in COMBINATIONS
        if options.level in (None, level) and options.task in (None, task)
    ]
    if not chosen:
        chosen = [(options.level, options.task)]
    index = generate(options.out.resolve(), chosen, options.case)
    print(f"{len(index)} comparisons in {options.out}")


if __name__ == "__main__":
    main()
