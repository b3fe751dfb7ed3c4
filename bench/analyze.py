"""What finding the first NaN of many ranks costs: our binary, and the reference on the same dump, in one run.

A step of a real training on two ranks is repeated to many ranks and many records (see analyze_dumps.py); a
NaN is born in the middle of one rank and everything after the next collective has it. Dumps are made below
the project and removed afterwards. Ours is timed from the start of the process to its end, with all files it
writes; the time of the reference leaves out the import of the package. The two take turns, and the best turn
of each counts. Memory is the peak the kernel reports, mapped files included. The answer is checked in every
turn.

Run from the root: ``python -m bench.analyze``. ``--quick`` takes small dumps; ``--rows`` picks rows by a part
of their name.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.analyze_dumps import Made, Seed, Shape, make
from bench.compare import BUSY, MEGA, Used
from bench.environment import REFERENCE, ROOT, environment, figure, read_options, settings

TURNS = 3
WIDTH = 32
# Our two threads have work nearly all the time: with less of two processors they had to wait for others.
FREE_CORES = 1.4


class Row(NamedTuple):
    what: str
    """Behind the ranks and records."""
    shape: Shape
    most_seconds: float | None = None
    most_mb: float | None = None
    times: float | None = None
    """How many times faster than the reference, which takes part only then."""


ROWS = [
    Row("one birth", Shape(64, 20_000, 8), most_seconds=10, most_mb=1000),
    Row("all finite", Shape(64, 20_000, 8, has_birth=False), most_seconds=10, most_mb=1000),
    Row("with the reference", Shape(8, 5_000, 4), times=10),
]


def run(command: list[str], python: Path | None, place: Path) -> tuple[str, Used]:
    """A command from its start to its end: what it said, and what it took."""
    out, log = place / "answer", place / "log"
    with out.open("wb") as answer, log.open("wb") as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=answer, stderr=errors, env=environment(python), cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    # 1 says that something was found, by our binary; an interpreter says so of an exception.
    if process.returncode not in ((0, 1) if python is None else (0,)):
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{log.read_text()[-2000:]}")
    processor = usage.ru_utime + usage.ru_stime
    return out.read_text(), Used(seconds, usage.ru_maxrss * 1024 / MEGA, running=processor / seconds)


def work(python: Path, order: dict[str, Any], place: Path) -> tuple[dict[str, Any], Used]:
    """A job of the worker and its answer."""
    said, used = run([str(python), "-m", "bench.analyze_worker", json.dumps(order)], python, place)
    answer: dict[str, Any] = json.loads(said.splitlines()[-1])
    return answer, used


def written(output: Path) -> str:
    """The file that both tools write, without the numbers in its name; nothing if nothing was found."""
    texts = [path.read_text() for path in output.glob("anomaly_analyze_*.json")]
    if len(texts) > 1:
        raise RuntimeError(f"{output} has {len(texts)} results")
    return texts[0] if texts else ""


def ours(binary: Path, step: Path, made: Made, place: Path) -> tuple[Used, str]:
    """One run of our command; it must name the culprit, and only that one."""
    output = place / "ours"
    command = [str(binary), "-f", "pytorch", "nan_analyze", "-i", str(step), "-o", str(output)]
    said, used = run([*command, "--format", "json"], None, place)
    answer = json.loads(said)
    births = [(birth["rank"], birth["operation"]) for birth in answer["births"]]
    expected = [] if made.culprit is None else [made.culprit]
    if births != expected or answer["more_births"]:
        raise RuntimeError(f"{answer['summary']}; expected {expected}")
    result = written(output)
    shutil.rmtree(output, ignore_errors=True)
    return used, result


def theirs(step: Path, place: Path) -> tuple[Used, str]:
    output = place / "reference"
    answer, used = work(REFERENCE, {"job": "reference", "step": str(step), "output": str(output)}, place)
    result = written(output)
    shutil.rmtree(output, ignore_errors=True)
    running = answer["processor_seconds"] / answer["seconds"]
    return used._replace(seconds=answer["seconds"], running=running), result


def named(result: str) -> list[tuple[int, str]]:
    """The ranks and operations of a result."""
    ranks = json.loads(result or "{}")
    return [(int(rank.split("_")[1]), one["op_name"]) for rank, found in ranks.items() for one in found]


def taken(used: Used) -> str:
    """Wall time, processor time and memory."""
    return f"{figure(used.seconds):>9} {figure(used.seconds * used.running):>9} {used.peak_mb:>6.0f} MB"


def best(turns: list[Used]) -> Used:
    fastest = min(turns, key=lambda used: used.seconds)
    return fastest._replace(peak_mb=max(used.peak_mb for used in turns))


def measure(row: Row, seed: Seed, binary: Path, place: Path, reached: list[bool]) -> None:
    """Makes a dump, has it analysed, and prints the line."""

    def aim(text: str, is_reached: bool) -> str:
        reached.append(is_reached)
        return f"{text}: {'reached' if is_reached else 'MISSED'}"

    step = place / "step0"
    made = make(seed, row.shape, step)
    mine, other = [], []
    for _ in range(TURNS):
        used, result = ours(binary, step, made, place)
        mine.append(used)
        expected = [] if made.culprit is None else [made.culprit]
        if named(result) != expected:
            raise RuntimeError(f"the file names {named(result)}; expected {expected}")
        if row.times is not None and REFERENCE.exists():
            used, their_result = theirs(step, place)
            other.append(used)
            # With one culprit the order in which the reference visits ranks does not matter.
            if their_result != result:
                raise RuntimeError(f"the reference names {named(their_result)}, in other words than ours")
    fastest = best(mine)
    aims = []
    if row.most_seconds is not None:
        aims.append(aim(f"< {row.most_seconds:g} s", fastest.seconds < row.most_seconds))
    if row.most_mb is not None:
        aims.append(aim(f"< {row.most_mb:g} MB", fastest.peak_mb < row.most_mb))
    beside, ratio = "-", "-"
    if other:
        slow = best(other)
        beside = taken(slow)
        times = slow.seconds / fastest.seconds
        ratio = f"{times:.1f}x"
        aims.append(aim(f">= {row.times:g}x", times >= (row.times or 0)))
    what, spent = f"{row.shape.ranks} x {made.records}, {row.what}", taken(fastest)
    print(
        f"{what:<{WIDTH}} {made.size_bytes / MEGA:>6.0f} MB  {spent}  {beside:>{len(spent)}}  "
        f"{ratio:>7}  {', '.join(aims)}",
        flush=True,
    )
    if fastest.running < FREE_CORES or (other and best(other).running < BUSY):
        print(f"{'':<{WIDTH}} busy machine: others had a part of the two processors", flush=True)
    shutil.rmtree(step)


def small(row: Row) -> Row:
    return row._replace(shape=row.shape._replace(records=row.shape.records // 20))


def main() -> int:
    options = read_options(__doc__, "small dumps", "binary")
    place = options.place
    print(
        f"\nfirst NaN across ranks, {settings()}; best of {TURNS} turns, answers checked\n"
        f"\n{'ranks x records of each':<{WIDTH}} {'dumps':>9}  {'msprobe':>9} {'processor':>9} {'peak':>9}  "
        f"{'reference':>9} {'processor':>9} {'peak':>9}  {'ratio':>7}  aims"
    )
    reached: list[bool] = []
    with tempfile.TemporaryDirectory(dir=place) as folder:
        order = {"job": "seed", "folder": str(Path(folder) / "seed")}
        answer, _ = work(Path(sys.executable), order, Path(folder))
        seed = Seed(answer["steps"])
        for row in ROWS:
            if options.rows in row.what:
                measure(small(row) if options.quick else row, seed, options.binary, Path(folder), reached)
    shutil.rmtree(place, ignore_errors=True)
    print(f"\n{sum(reached)} of {len(reached)} aims reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
