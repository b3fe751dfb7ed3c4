"""What collection costs: our package and the reference on the same model, under the default thread settings.

For each row three processes are alive: one trains without any tool, one with ours, one with the reference.
They take turns step by step, so that a busy moment of the machine hurts all of them; medians are compared. A
reference that is too slow for as many turns as the others stops earlier.
A step is forward, backward and optimizer, with ``start``, ``stop`` and ``step`` of the debugger around them.
Dumps are written below the project; tensor files are emptied after every step, outside of the time measured.

``--quick`` takes fewer steps; ``--rows`` picks rows by a part of their name.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.environment import REFERENCE, ROOT, environment, read_options, settings

# As in collection_worker.py.
RELU_CALLS = 20_000
WARM_UP = 3
# Threads of OpenMP spin for some 20 ms after their last piece of work. Whoever took the next turn at once
# would share its cores with those of the one before; on a user's machine there is only one.
SETTLE_SECS = 0.06


class Row(NamedTuple):
    """One configuration, with what it is to reach."""

    what: str
    task: str
    level: str
    summary_mode: str = "statistics"
    most: float | None = None
    """Our step time, in times of the bare one."""
    smaller: float | None = None
    """How many times smaller than the reference's overhead ours is to be."""
    idle: bool = False
    flight: bool = False
    """Whether ours holds its records in memory; the reference has no such thing and writes them."""
    sketch: bool = False
    """Whether each tensor gets a sketch; what that adds is compared to what statistics alone add."""


class Times(NamedTuple):
    bare: float
    ours: float
    reference: float | None
    tensor_bytes: int
    records: tuple[int, int]
    dd: float | None


ROWS = [
    Row("attached, idle", "statistics", "mix", most=1.02, idle=True),
    Row("statistics L0", "statistics", "L0", most=1.2, smaller=5),
    Row("statistics L1", "statistics", "L1", most=1.4, smaller=7),
    Row("statistics mix", "statistics", "mix", most=1.25, smaller=8),
    Row("statistics L1, md5", "statistics", "L1", "md5", most=1.25, smaller=8),
    Row("flight recorder L1", "statistics", "L1", most=1.4, smaller=7, flight=True),
    Row("tensor L1", "tensor", "L1"),
]
SKETCH_ROWS = [
    Row(f"sketch {level}", "statistics", level, most=1.15, sketch=True) for level in ("L0", "L1", "mix")
]
# How much longer dump.json may be with sketches.
MOST_LONGER = 2.0


class Side:
    """A process that does one piece of work whenever it is told to."""

    worker = "bench/collection_worker.py"

    def __init__(self, python: str, order: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [python, str(ROOT / self.worker), json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(Path(python)),
            cwd=ROOT,
        )
        self.torch: str | None = None
        self.seconds: list[float] = []

    def wait_until_ready(self) -> None:
        self.torch = self._answer()["torch"]

    def work(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        time.sleep(SETTLE_SECS)
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = self._answer()
        self.seconds.append(answer["seconds"])
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a side of the bench ended with exit code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def median(self) -> float:
        return statistics.median(self.seconds[WARM_UP:])

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def config_file(row: Row, folder: Path, side: str) -> tuple[str, str]:
    """A configuration for one side and the directory it dumps into."""
    dump = folder / f"dump_{side}"
    section: dict[str, Any] = {
        "scope": [],
        "list": [],
        "data_mode": ["all"],
        "summary_mode": row.summary_mode,
    }
    if row.sketch:
        section["sketch"] = side == "sketched"
    if row.flight and side == "ours":
        section["flight_recorder"] = {"steps": 2}
    config = {
        "task": row.task,
        "dump_path": str(dump),
        "rank": [],
        # Collecting the first step puts all hooks in place; the last number keeps the tool from ending.
        "step": [0, 1_000_000] if row.idle else [],
        "level": row.level,
        row.task: section,
    }
    path = folder / f"{side}.json"
    path.write_text(json.dumps(config))
    return str(path), str(dump)


def sides_of(row: Row, folder: Path, work: str) -> tuple[Side, Side, Side | None]:
    """Without any tool, with ours, and with the reference if it is installed."""
    config, dump = config_file(row, folder, "ours")
    bare = Side(sys.executable, {"work": work, "config": None, "dump_path": None})
    ours = Side(sys.executable, {"work": work, "config": config, "dump_path": dump})
    reference = None
    if REFERENCE.exists():
        config, dump = config_file(row, folder, "reference")
        reference = Side(str(REFERENCE), {"work": work, "config": config, "dump_path": dump})
    for side in (bare, ours, reference):
        if side is not None:
            side.wait_until_ready()
    if reference is not None and reference.torch != bare.torch:
        raise RuntimeError(f"torch {bare.torch} here, {reference.torch} in .venv-reference: remove that one")
    return bare, ours, reference


def dd_seconds(folder: Path, size_bytes: int) -> float:
    """What writing this much to the same disk takes."""
    target = folder / f"dd-{time.monotonic_ns()}"
    command = [
        "dd",
        "if=/dev/zero",
        f"of={target}",
        "bs=1M",
        f"count={max(1, size_bytes >> 20)}",
        "status=none",
    ]
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - begin
    os.truncate(target, 0)
    return seconds


def measure(row: Row, folder: Path, rounds: int, budget_secs: float, work: str = "train") -> Times:
    """Takes turns, ``rounds`` after warming up; the reference at least three, more while there is time."""
    bare, ours, reference = sides_of(row, folder, work)
    sides = [side for side in (bare, ours, reference) if side is not None]
    tensor_bytes, records, dd = 0, (0, 0), []
    begin = time.perf_counter()
    active = list(sides)
    for number in range(WARM_UP + rounds):
        if number >= WARM_UP + 3 and time.perf_counter() - begin > budget_secs:
            active = [bare, ours]
        # Everybody is first, second and last equally often.
        turns = active[number % len(active) :] + active[: number % len(active)]
        answers = {side: side.work() for side in turns}
        theirs = answers[reference]["records"] if reference in answers else records[1]
        records = (answers[ours]["records"], theirs)
        if row.task == "tensor":
            tensor_bytes = answers[ours]["tensor_bytes"]
            dd.append(dd_seconds(folder, tensor_bytes))
    for side in sides:
        side.close()
    return Times(
        bare.median(),
        ours.median(),
        None if reference is None else reference.median(),
        tensor_bytes,
        records,
        statistics.median(dd[WARM_UP:]) if dd else None,
    )


def measure_sketch(row: Row, folder: Path, rounds: int) -> list[bool]:
    """Takes turns with no tool, statistics, and statistics with sketches; prints what sketches add."""
    sides = [Side(sys.executable, {"work": "train", "config": None, "dump_path": None})]
    for name in ("plain", "sketched"):
        config, dump = config_file(row, folder, name)
        sides.append(Side(sys.executable, {"work": "train", "config": config, "dump_path": dump}))
    for side in sides:
        side.wait_until_ready()
    answers: dict[Side, dict[str, Any]] = {}
    for number in range(WARM_UP + rounds):
        # Everybody is first, second and last equally often.
        at = number % len(sides)
        answers = {side: side.work() for side in sides[at:] + sides[:at]}
    for side in sides:
        side.close()
    bare, plain, sketched = (side.median() for side in sides)
    added = (sketched - bare) / max(plain - bare, 1e-6)
    sizes = [answers[side]["json_bytes"] for side in sides[1:]]
    longer = sizes[1] / sizes[0]
    assert row.most is not None
    reached = [added <= row.most, longer <= MOST_LONGER]
    print(
        f"{row.what:<22} {bare * 1e3:8.1f} ms  {plain * 1e3:8.1f} ms, with sketches {sketched * 1e3:.1f} ms: "
        f"{added:.3f}x the time added  <= {row.most}x: {verdict(reached[0])}; dump.json {sizes[0]} bytes, "
        f"with sketches {sizes[1]}: {longer:.2f}x  <= {MOST_LONGER}x: {verdict(reached[1])}",
        flush=True,
    )
    return reached


def verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def print_step_row(row: Row, times: Times) -> list[bool]:
    """The line of a row; whether each of its aims is reached."""
    ratio = times.ours / times.bare
    reached = []
    aims = []
    if row.most is not None:
        reached.append(ratio <= row.most)
        aims.append(f"<= {row.most}x: {verdict(reached[-1])}")
    theirs, overhead = "-", "-"
    if times.reference is not None:
        theirs = f"{times.reference * 1e3:8.1f} ms {times.reference / times.bare:6.2f}x"
        # Ours can come out below zero where it is smaller than the noise.
        factor = (times.reference - times.bare) / max(times.ours - times.bare, 1e-6)
        overhead = f"{factor:.1f}x" if factor < 1000 else "> 1000x"
        if row.smaller is not None:
            reached.append(factor >= row.smaller)
            aims.append(f">= {row.smaller}x: {verdict(reached[-1])}")
    records = f"{times.records[0]}/{times.records[1]}" if not (row.idle or row.flight) else "-"
    print(
        f"{row.what:<22} {times.bare * 1e3:8.1f} ms  {times.ours * 1e3:8.1f} ms {ratio:6.3f}x  {theirs:>20}"
        f"  {overhead:>9}  {records:>9}  {', '.join(aims)}",
        flush=True,
    )
    return reached


def print_tensor_rows(times: Times) -> list[bool]:
    """How fast tensors get to disk, against a plain copy of as many bytes, and against the reference."""
    assert times.dd is not None
    size = times.tensor_bytes / 1e9
    whole, added, plain = size / times.ours, size / max(times.ours - times.bare, 1e-6), size / times.dd
    reached = [added >= 0.7 * plain]
    print(
        f"{'  throughput':<22} {size:.2f} GB a step at {whole:.2f} GB/s, dd {plain:.2f} GB/s: "
        f"{whole / plain:.2f} of dd"
    )
    print(
        f"{'  by the time added':<22} {added:.2f} GB/s: {added / plain:.2f} of dd"
        f"  >= 0.7: {verdict(reached[0])}"
    )
    if times.reference is not None:
        faster, theirs = times.reference / times.ours, size / times.reference
        reached.append(faster >= 3)
        print(
            f"{'  vs the reference':<22} {faster:.1f}x, {theirs:.2f} GB/s there  >= 3x: {verdict(reached[1])}"
        )
    return reached


def print_call_row(times: Times) -> None:
    """What a wrapper costs where nothing is collected."""

    def figure(seconds: float | None) -> str:
        if seconds is None:
            return "-"
        added = (seconds - times.bare) / RELU_CALLS * 1e9
        return f"{added:+.0f} ns {seconds / times.bare:6.3f}x"

    bare = f"{times.bare / RELU_CALLS * 1e9:8.0f} ns"
    print(f"{'idle torch.relu':<22} {bare}  {figure(times.ours):>19}  {figure(times.reference):>20}")


def new_folder(place: Path) -> Path:
    """Stays until the end: where many files were just deleted, new ones take longer to create."""
    return Path(tempfile.mkdtemp(dir=place))


def main() -> int:
    options = read_options(__doc__, "fewer steps")
    rounds, budget_secs = (5, 15.0) if options.quick else (25, 28.0)
    place = options.place
    heads = f"{'no tool':>11}  {'msprobe':>19}  {'reference':>20}  {'overhead':>9}  {'records':>9}  aims"
    print(
        f"\na GPT of 7M parameters, batch 4 x 128, {settings()}; medians of {rounds} steps"
        "\noverhead: the reference's added time over ours; records: of one step, ours/reference\n"
        f"\n{'':<22} {heads}"
    )
    reached: list[bool] = []
    for row in ROWS:
        if options.rows not in row.what:
            continue
        more = 4 if row.idle else 1
        times = measure(row, new_folder(place), rounds * more, budget_secs)
        reached += print_step_row(row, times)
        if row.task == "tensor":
            reached += print_tensor_rows(times)
    for row in SKETCH_ROWS:
        if options.rows in row.what:
            reached += measure_sketch(row, new_folder(place), rounds)
    if options.rows in "idle call":
        row = Row("idle call", "statistics", "L1", idle=True)
        print_call_row(measure(row, new_folder(place), rounds, budget_secs, work="relu"))
    shutil.rmtree(place, ignore_errors=True)
    print(f"\n{sum(reached)} of {len(reached)} aims reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
