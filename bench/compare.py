"""What comparing two dumps costs: our binary and the reference on the same data, in one run.

Dumps are made below the project and removed afterwards. Ours is timed as a user sees it, from the start of
the process to its end, best of several runs; the reference is called in a process of its own, once, and its
time leaves out the import of the package. Peak memory is what the kernel reports of each process.

``--quick`` takes small dumps, to see that everything works; ``--rows`` picks cases by a part of their name.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.environment import ROOT, environment, figure, read_options, settings

RUNS = 5
MEGA = 1e6
WIDTH = 42
# The reference runs once. With less of the processor than this, its time says little.
BUSY = 0.85
# What the large pair leaves free on the disk, whose files have holes where the file system can.
SPARE_BYTES = 2 << 30


class Sizes(NamedTuple):
    """How much of everything."""

    small_apis: int
    large_apis: int
    pairs: int
    elements: int
    growth: tuple[int, int, int]


FULL = Sizes(10_000, 50_000, 200, 1 << 30, (1_000, 10_000, 100_000))
QUICK = Sizes(300, 1_500, 10, 1 << 25, (100, 1_000, 10_000))


class Used(NamedTuple):
    """What a run took. ``anonymous_mb`` is sampled and only there where it was asked for."""

    seconds: float
    peak_mb: float
    anonymous_mb: float = 0.0
    running: float = 1.0
    """Processor time by wall time: a single-threaded process far below 1 had to wait for others."""


class Bench:
    """Where things are, and the aims met so far."""

    def __init__(self, place: Path, binary: Path, reference: Path) -> None:
        self.place = place
        self.binary = binary
        self.reference = reference
        self.reached: list[bool] = []
        self.environment = environment()

    def aim(self, text: str, reached: bool) -> str:
        self.reached.append(reached)
        return f"{text}: {'reached' if reached else 'MISSED'}"

    def run(self, command: list[str], answer: Path, sample: bool = False) -> Used:
        """A command from its start to its end. ``answer`` gets its standard output."""
        log = answer.with_suffix(".log")
        with answer.open("wb") as out, log.open("wb") as errors:
            begin = time.perf_counter()
            process = subprocess.Popen(command, stdout=out, stderr=errors, env=self.environment)
            anonymous_kb = peak_anonymous_kb(process.pid) if sample else 0
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        # 1 says that differences were found.
        if process.returncode not in (0, 1):
            raise RuntimeError(
                f"{' '.join(command)} ended with {process.returncode}:\n{log.read_text()[-2000:]}"
            )
        running = (usage.ru_utime + usage.ru_stime) / seconds
        return Used(seconds, usage.ru_maxrss * 1024 / MEGA, anonymous_kb * 1024 / MEGA, running)

    def work(self, python: Path, order: dict[str, Any]) -> tuple[dict[str, Any], Used]:
        """A job of compare_worker.py and its answer."""
        answer = self.place / "answer"
        command = [str(python), str(ROOT / "bench/compare_worker.py"), json.dumps(order)]
        used = self.run(command, answer)
        last = answer.read_text().splitlines()[-1]
        return json.loads(last), used

    @contextlib.contextmanager
    def dumps(self, job: str, count: int) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Two dumps, for as long as they are needed."""
        with tempfile.TemporaryDirectory(dir=self.place) as folder:
            made = Path(folder) / "dumps"
            about, _ = self.work(Path(sys.executable), {"job": job, "folder": str(made), "count": count})
            paths = {"npu_path": str(made / "npu/dump.json"), "bench_path": str(made / "bench/dump.json")}
            if job in ("statistics", "sketched"):
                paths["stack_path"] = str(made / "npu/stack.json")
            (made / "compare.json").write_text(json.dumps({**paths, "is_print_compare_log": False}))
            yield made, about

    def ours(self, dumps: Path, table: str, rows: int, sample: bool = False) -> Used:
        """One run of our binary in its older form. The table must be there, and a csv have every row."""
        output = dumps / "ours"
        command = [str(self.binary), "-f", "pytorch", "compare", "-i", str(dumps / "compare.json")]
        stacks = ["-s"] if (dumps / "npu/stack.json").exists() else []
        used = self.run(
            [*command, "-o", str(output), *stacks, "--format", table], self.place / "ours.out", sample
        )
        (path,) = output.glob(f"compare_result*.{table}")
        if table == "csv":
            with path.open(newline="") as file:
                found = sum(1 for _ in csv.reader(file)) - 1
            if found != rows:
                raise RuntimeError(f"{path} has {found} rows instead of {rows}")
        shutil.rmtree(output)
        return used

    def ours_best(self, dumps: Path, tables: list[str], rows: int, runs: int = RUNS) -> list[Used]:
        """The best run for each kind of table; they take turns, so that a busy moment hurts all of them."""
        every = [[self.ours(dumps, table, rows) for table in tables] for _ in range(runs)]
        return [best(list(runs_of_one)) for runs_of_one in zip(*every)]

    def theirs(self, dumps: Path) -> Used | None:
        """One run of the reference if it is installed."""
        if not self.reference.exists():
            return None
        output = dumps / "reference"
        stacks = (dumps / "npu/stack.json").exists()
        order = {"job": "reference", "folder": str(dumps), "output": str(output), "stacks": stacks}
        answer, used = self.work(self.reference, order)
        shutil.rmtree(output)
        return Used(answer["seconds"], used.peak_mb, running=used.running)


def best(runs: list[Used]) -> Used:
    return Used(min(used.seconds for used in runs), max(used.peak_mb for used in runs))


def peak_anonymous_kb(pid: int) -> int:
    """Highest resident memory of a process that is not a mapped file, sampled until it ends."""
    status, peak_kb = Path(f"/proc/{pid}/status"), 0
    while True:
        # A process that has ended but was not waited for has a state and no memory.
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        if "RssAnon" not in fields:
            return peak_kb
        peak_kb = max(peak_kb, sum(int(fields[field].split()[0]) for field in ("RssAnon", "RssShmem")))
        time.sleep(0.001)


def line(what: str, ours: Used, theirs: Used | None, aims: list[str]) -> None:
    other, ratio = f"{'-':>10} {'':>9}", "-"
    if theirs is not None:
        other = f"{figure(theirs.seconds):>10} {theirs.peak_mb:>6.0f} MB"
        ratio = f"{theirs.seconds / ours.seconds:.1f}x"
    print(
        f"{what:<{WIDTH}} {figure(ours.seconds):>10} {ours.peak_mb:>6.0f} MB  {other}  {ratio:>8}  "
        f"{', '.join(aims)}",
        flush=True,
    )
    if theirs is not None and theirs.running < BUSY:
        print(f"{'':<{WIDTH}} busy machine: the reference ran {theirs.running:.0%} of its time")


def ratio_aim(bench: Bench, ours: Used, theirs: Used | None, least: float) -> list[str]:
    if theirs is None:
        return []
    return [bench.aim(f">= {least:g}x", theirs.seconds / ours.seconds >= least)]


def statistics_case(bench: Bench, apis: int, most_mb: float, with_csv: bool) -> None:
    with bench.dumps("statistics", apis) as (dumps, _):
        ours, *others = bench.ours_best(dumps, ["xlsx", "csv"] if with_csv else ["xlsx"], 3 * apis)
        theirs = bench.theirs(dumps)
        aims = ratio_aim(bench, ours, theirs, 40)
        aims.append(bench.aim(f"< {most_mb:g} MB", ours.peak_mb < most_mb))
        line(f"statistics, {apis} APIs, xlsx", ours, theirs, aims)
        for table in others:
            share = table.seconds / ours.seconds
            aims = [bench.aim(f"{share:.2f} of our xlsx, < 0.25", share < 0.25)]
            line(f"statistics, {apis} APIs, csv", table, None, aims)


def sketch_case(bench: Bench, apis: int) -> None:
    """The same records with a sketch in each tensor; both pairs of dumps take turns."""
    with bench.dumps("statistics", apis) as (plain, about), bench.dumps("sketched", apis) as (sketched, more):
        for table in ("xlsx", "csv"):
            every = [[bench.ours(dumps, table, 3 * apis) for dumps in (plain, sketched)] for _ in range(RUNS)]
            without, ours = (best(list(runs)) for runs in zip(*every))
            ratio = ours.seconds / without.seconds
            aims = [bench.aim(f"{ratio:.2f}x of that without, <= 1.3x", ratio <= 1.3)]
            if table == "csv":
                longer = more["json_bytes"] / about["json_bytes"]
                aims.append(f"dump.json {longer:.2f}x")
            line(f"sketches, {apis} APIs, {table}", ours, None, aims)


def plain_read(folder: Path) -> float:
    """Seconds of reading every tensor file once, in one thread, into a buffer that stays in cache."""
    buffer = memoryview(bytearray(1 << 19))
    begin = time.perf_counter()
    for path in sorted(folder.glob("*/dump_tensor_data/*.pt")):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - begin


def tensor_case(bench: Bench, pairs: int) -> None:
    with bench.dumps("tensors", pairs) as (dumps, about):
        # The first pass brings every file into the page cache; then the two take turns.
        reading = plain_read(dumps)
        every = []
        for _ in range(RUNS):
            every.append(bench.ours(dumps, "xlsx", pairs))
            reading = min(reading, plain_read(dumps))
        ours = best(every)
        theirs = bench.theirs(dumps)
        size = about["size_bytes"] / 1e9
        line(f"tensors, {pairs} pairs of 1M float32", ours, theirs, ratio_aim(bench, ours, theirs, 15))
        share = reading / ours.seconds
        met = bench.aim(f"{share:.2f} of that, >= 0.5", share >= 0.5)
        rates = f"{size / ours.seconds:.2f} GB/s; reading alone {size / reading:.2f} GB/s"
        there = "" if theirs is None else f"; reference {size / theirs.seconds:.2f} GB/s"
        print(f"{f'  {size:.2f} GB in page cache':<{WIDTH}} {rates}{there}  {met}", flush=True)


def large_case(bench: Bench, elements: int) -> None:
    size = 4 * elements / 1e9
    what = f"one pair of {size:.1f} GB tensors"
    free = shutil.disk_usage(bench.place).free
    # Without holes both files are written in full.
    if free < 8 * elements + SPARE_BYTES:
        print(f"{what:<{WIDTH}} left out: {free / 1e9:.0f} GB free on the disk, {2 * size + 2:.0f} needed")
        return
    with bench.dumps("large", elements) as (dumps, _):
        ours = bench.ours(dumps, "xlsx", 1, sample=True)
    met = bench.aim(f"{ours.anonymous_mb:.0f} MB beyond mapped files, < 300 MB", ours.anonymous_mb < 300)
    line(what, ours, None, [met])


def growth_case(bench: Bench, counts: tuple[int, int, int]) -> None:
    """Time per API must not rise with their number; starting a process weighs on the smallest case only."""
    per_api: dict[str, list[float]] = {"xlsx": [], "csv": []}
    for apis in counts:
        with bench.dumps("statistics", apis) as (dumps, _):
            runs = bench.ours_best(dumps, list(per_api), 3 * apis, runs=3)
            for (table, figures), ours in zip(per_api.items(), runs):
                figures.append(ours.seconds / apis * 1e6)
                aims = [f"{figures[-1]:.1f} us per API"]
                if apis == counts[-1]:
                    most = 1.3 * figures[-2]
                    aims.append(bench.aim(f"<= 1.3x of {counts[-2]} APIs", figures[-1] <= most))
                line(f"growth, {apis} APIs, {table}", ours, None, aims)


def main() -> int:
    options = read_options(__doc__, "small dumps", "reference", "binary")
    sizes = QUICK if options.quick else FULL
    place = options.place
    print(
        f"\ntwo dumps compared, {settings()}; 3 rows per API, stacks, 5 % of the rows coloured"
        f"\nbest of {RUNS} runs for msprobe, one of the reference without its import\n"
        f"\n{'':<{WIDTH}} {'msprobe':>10} {'peak':>9}  {'reference':>10} {'peak':>9}  {'ratio':>8}  aims"
    )
    with tempfile.TemporaryDirectory(dir=place) as folder:
        bench = Bench(Path(folder), options.binary, options.reference)
        cases: dict[str, Callable[[], None]] = {
            "statistics small": lambda: statistics_case(bench, sizes.small_apis, 200, with_csv=False),
            "statistics large": lambda: statistics_case(bench, sizes.large_apis, 400, with_csv=True),
            "sketches": lambda: sketch_case(bench, sizes.large_apis),
            "tensors": lambda: tensor_case(bench, sizes.pairs),
            "one pair": lambda: large_case(bench, sizes.elements),
            "growth": lambda: growth_case(bench, sizes.growth),
        }
        for name, case in cases.items():
            if options.rows in name:
                case()
    shutil.rmtree(place, ignore_errors=True)
    print(f"\n{sum(bench.reached)} of {len(bench.reached)} aims reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
