"""Two runs compared, by us and by the reference on the same files: key data of RL, directions of gradients.

Each comparison is the Python function users call, in a process of its own; its time is that of the call
alone. Memory is what is resident beside mapped files. Ours is the best of several calls, the reference is run
once.

Run from the root: ``python -m bench.two_runs``. ``--quick`` takes little data; ``--rows`` picks cases by a
part of their name.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from bench.compare import peak_anonymous_kb
from bench.environment import REFERENCE, ROOT, environment, read_options, settings

RUNS = 3
WIDTH = 44


class Case(NamedTuple):
    what: str
    job: str
    shape: dict[str, int]
    """What the files are made of: see the jobs of two_runs_worker.py."""
    most_mb: float
    times: float | None = None
    """How many times faster than the reference, which is run only then: its pictures take many minutes."""
    most_seconds: float | None = None


MILLION = 1_000_000
CASES = [
    Case(
        "key data, 1 key x 200 pairs x 1M",
        "key_data",
        {"keys": 1, "pairs": 200, "elements": MILLION},
        most_mb=300,
        times=15,
    ),
    Case(
        "key data, 8 keys x 25 pairs x 1M",
        "key_data",
        {"keys": 8, "pairs": 25, "elements": MILLION},
        most_mb=300,
        times=15,
    ),
    Case(
        "gradients, 2 ranks x 10 steps x 50M",
        "gradients",
        {"ranks": 2, "steps": 10, "parameters": 24, "elements": 2 << 20},
        most_mb=300,
        times=10,
    ),
    Case(
        "gradients, 2000 pictures",
        "gradients",
        {"ranks": 1, "steps": 10, "parameters": 2000, "elements": 64},
        most_mb=300,
        most_seconds=20,
    ),
]


def work(python: Path, order: dict[str, Any], place: Path) -> tuple[dict[str, Any], float]:
    """A job of the worker: its answer, and the megabytes it had in memory."""
    command = [str(python), str(ROOT / "bench/two_runs_worker.py"), json.dumps(order)]
    out, log = place / "answer", place / "log"
    with out.open("wb") as answer, log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=answer, stderr=errors, env=environment(python))
        peak_kb = peak_anonymous_kb(process.pid)
        if process.wait() != 0:
            raise RuntimeError(
                f"{' '.join(command)} ended with {process.returncode}:\n{log.read_text()[-2000:]}"
            )
    found: dict[str, Any] = json.loads(out.read_text().splitlines()[-1])
    return found, peak_kb / 1024


def measure(case: Case, place: Path, reached: list[bool]) -> str:
    folder = place / "runs"
    work(Path(sys.executable), {"job": f"make_{case.job}", "folder": str(folder), **case.shape}, place)
    order = {"job": f"compare_{case.job}", "folder": str(folder)}
    every = [
        work(Path(sys.executable), {**order, "output": str(place / f"ours{run}")}, place)
        for run in range(RUNS)
    ]
    ours, _ = min(every, key=lambda one: float(one[0]["seconds"]))
    peak_mb = max(peak for _, peak in every)
    other, ratio, aims = "-", "-", []
    seconds = ours["seconds"]
    if case.most_seconds is not None:
        reached.append(seconds <= case.most_seconds)
        aims.append(f"<= {case.most_seconds:g} s: {'reached' if reached[-1] else 'MISSED'}")
    if case.times is not None and REFERENCE.exists():
        theirs, _ = work(REFERENCE, {**order, "output": str(place / "theirs")}, place)
        times = theirs["seconds"] / seconds
        other, ratio = f"{theirs['seconds']:.2f} s", f"{times:.1f}x"
        reached.append(times >= case.times)
        aims.append(f">= {case.times:g}x: {'reached' if reached[-1] else 'MISSED'}")
    reached.append(peak_mb <= case.most_mb)
    aims.append(f"<= {case.most_mb:g} MB: {'reached' if reached[-1] else 'MISSED'}")
    shutil.rmtree(folder)
    cores = ours["processor_seconds"] / seconds
    return (
        f"{case.what:<{WIDTH}} {seconds:8.3f} s {cores:5.1f}  {peak_mb:6.0f} MB  {other:>9}  {ratio:>8}"
        f"  {', '.join(aims)}"
    )


def small(case: Case) -> Case:
    return case._replace(shape={**case.shape, "elements": max(case.shape["elements"] // 1000, 8)})


def main() -> int:
    options = read_options(__doc__, "little data")
    place = options.place
    print(
        f"\ntwo runs compared, {settings()}\n"
        f"\n{'':<{WIDTH}} {'msprobe':>10} {'cores':>5}  {'memory':>9}  {'reference':>9}  {'ratio':>8}  aims"
    )
    reached: list[bool] = []
    for case in CASES:
        if options.rows in case.what:
            with tempfile.TemporaryDirectory(dir=place) as folder:
                print(measure(small(case) if options.quick else case, Path(folder), reached), flush=True)
    shutil.rmtree(place, ignore_errors=True)
    print(f"\n{sum(reached)} of {len(reached)} aims reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
