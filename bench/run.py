"""Measures msprobe and the alternatives side by side, in one run, under the default thread settings.

Every figure is the best of several alternating passes, so that a busy moment of the machine hurts both sides.
Prints a table with a ratio per row, the ratio aimed at, and whether it was reached.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from bench.environment import ROOT, settings

from msprobe.core import tensor as ours

ELEMENTS = 16 << 20
# Short jobs are repeated until the machine has had a quiet moment for each side.
PASSES = 15
MIN_SECONDS = 4.0
# How much slower the kernels may be without vector code of our own.
MOST_SLOWDOWN = 4


class Row(NamedTuple):
    what: str
    ours: str
    other: str
    ratio: float
    aim: str
    reached: bool


def best_of(*jobs: Callable[[], Any]) -> list[float]:
    """Seconds of the fastest pass of each job; passes alternate between the jobs."""
    best = [float("inf")] * len(jobs)
    begin = time.perf_counter()
    passes = 0
    while passes < PASSES or time.perf_counter() - begin < MIN_SECONDS:
        passes += 1
        for index, job in enumerate(jobs):
            start = time.perf_counter()
            job()
            best[index] = min(best[index], time.perf_counter() - start)
    return best


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def read_bandwidth() -> float:
    """Bytes per second of plain reading."""
    binary = ROOT / "target/release/examples/read_bandwidth"
    return float(subprocess.check_output([binary, str(4 * ELEMENTS)], text=True)) * 1e9


def four_calls(x: torch.Tensor) -> None:
    x.max(), x.min(), x.mean(), x.norm()


def statistics_rows(bandwidth: float) -> list[Row]:
    rows = []
    base = torch.randn(ELEMENTS)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = base.to(dtype)
        mine, theirs = best_of(lambda x=x: ours.statistics(x), lambda x=x: four_calls(x))  # type: ignore[misc]
        name = str(dtype).removeprefix("torch.")
        ratio = theirs / mine
        rows.append(
            Row(
                f"statistics {name} vs torch (4 calls)",
                milliseconds(mine),
                milliseconds(theirs),
                ratio,
                ">= 4x",
                ratio >= 4,
            )
        )
        if dtype == torch.float32:
            share = x.numel() * 4 / mine / bandwidth
            rows.append(
                Row(
                    "statistics float32 vs read bandwidth",
                    f"{x.numel() * 4 / mine / 1e9:.1f} GB/s",
                    f"{bandwidth / 1e9:.1f} GB/s",
                    share,
                    ">= 0.6x",
                    share >= 0.6,
                )
            )
    return rows


def numpy_metrics(n: Any, b: Any) -> list[Any]:
    """The metrics of a pair, one numpy expression each, as users write them."""
    eps = np.finfo(np.float64).eps
    n64, b64 = n.astype(np.float64), b.astype(np.float64)
    relative = np.abs(
        (np.where(b == 0, n + eps, n) - np.where(b == 0, b + eps, b)) / np.where(b == 0, b + eps, b)
    )
    larger = np.maximum(np.abs(n), np.abs(b))
    difference = np.abs(n - b)
    return [
        np.dot(n64, b64) / (np.linalg.norm(n64) * np.linalg.norm(b64)),
        np.sqrt(np.sum((n64 - b64) ** 2)),
        np.max(np.abs(n64 - b64)),
        np.max(relative),
        np.mean(relative < 0.001),
        np.mean(relative < 0.005),
        np.mean(relative < 0.01),
        np.mean(n == b),
        np.argmax(n != b),
        np.array_equal(np.isnan(n), np.isnan(b)),
        np.array_equal(np.isinf(n), np.isinf(b)),
        np.max(difference),
        np.max(np.nan_to_num(difference / larger)),
        np.mean(difference <= 0.001 * larger),
        np.mean(difference <= 0.01 * larger),
    ]


def pair_row() -> Row:
    golden = np.random.default_rng(0).standard_normal(ELEMENTS, dtype=np.float32)
    target = golden * np.float32(1.0005)
    mine, theirs = best_of(lambda: ours.pair_metrics(target, golden), lambda: numpy_metrics(target, golden))
    ratio = theirs / mine
    return Row(
        "pair metrics float32 vs numpy",
        milliseconds(mine),
        milliseconds(theirs),
        ratio,
        ">= 15x",
        ratio >= 15,
    )


def kernel_seconds() -> dict[str, float]:
    """Seconds of the kernels that have vector code, in this process."""
    golden = torch.randn(ELEMENTS)
    tensors = {name: golden.to(getattr(torch, name)) for name in ("float32", "bfloat16", "float16")}
    jobs: dict[str, Callable[[], Any]] = {
        f"statistics {name}": functools.partial(ours.statistics, x) for name, x in tensors.items()
    }
    jobs["pair metrics float32"] = functools.partial(ours.pair_metrics, golden * 1.0005, golden)
    return dict(zip(jobs, best_of(*jobs.values())))


def portable_rows() -> list[Row]:
    """What processors without AVX2 run, all of aarch64 among them, against what this one runs. A process
    decides once, so each side has its own."""

    def measured(setting: str) -> dict[str, float]:
        command = [sys.executable, "-m", "bench.run", "--kernels"]
        environment = {**os.environ, "MSPROBE_SIMD": setting}
        seconds: dict[str, float] = json.loads(subprocess.check_output(command, env=environment, cwd=ROOT))
        return seconds

    portable, vector = measured("off"), measured("")
    return [
        Row(
            f"{what}, portable vs vector code",
            milliseconds(portable[what]),
            milliseconds(vector[what]),
            portable[what] / vector[what],
            f"<= {MOST_SLOWDOWN}x",
            portable[what] <= MOST_SLOWDOWN * vector[what],
        )
        for what in portable
    ]


def crc_row(bandwidth: float) -> Row:
    x = np.random.default_rng(0).integers(0, 255, 4 * ELEMENTS, dtype=np.uint8)
    mine, theirs = best_of(lambda: ours.checksum(x), lambda: zlib.crc32(x))
    ratio = theirs / mine
    near_bandwidth = x.nbytes / theirs >= 0.8 * bandwidth
    return Row(
        "CRC-32 vs zlib.crc32",
        f"{x.nbytes / mine / 1e9:.1f} GB/s",
        f"{x.nbytes / theirs / 1e9:.1f} GB/s",
        ratio,
        ">= 5x, or 1x if zlib is at read bandwidth",
        ratio >= 5 or (near_bandwidth and ratio >= 1),
    )


def file_rows() -> list[Row]:
    """A .pt of 1 GB in the page cache: `msprobe inspect` against `cat` plus the statistics alone."""
    binary = ROOT / "target/release/msprobe"
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
        path = Path(folder) / "one_gb.pt"
        tensors = {f"layer{i}.weight": torch.randn(8 << 20) for i in range(32)}
        torch.save(tensors, path)
        size = path.stat().st_size

        def cat() -> None:
            subprocess.run(f"cat {path} > /dev/null", shell=True, check=True)

        def inspect() -> None:
            subprocess.run([binary, "inspect", path], check=True, stdout=subprocess.DEVNULL)

        def statistics() -> None:
            for x in tensors.values():
                ours.statistics(x)

        inspect_secs, cat_secs, statistics_secs = best_of(inspect, cat, statistics)
        tensors.clear()
        anonymous_mb = peak_anonymous_mb([str(binary), "inspect", str(path)])
    ratio = inspect_secs / (cat_secs + statistics_secs)
    return [
        Row(
            f"inspect a {size / 1e9:.2f} GB .pt vs cat + statistics",
            milliseconds(inspect_secs),
            f"{milliseconds(cat_secs)} + {milliseconds(statistics_secs)}",
            ratio,
            "<= 1.5x",
            ratio <= 1.5,
        ),
        Row(
            "  its peak memory beyond the mapping",
            f"{anonymous_mb:.1f} MB",
            "200 MB",
            anonymous_mb / 200,
            "<= 1x",
            anonymous_mb <= 200,
        ),
    ]


def peak_anonymous_mb(command: list[str]) -> float:
    """Highest resident memory of a command that is not a mapped file, sampled while it runs."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak_kb = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        for line in status.splitlines():
            if line.startswith("RssAnon:"):
                peak_kb = max(peak_kb, int(line.split()[1]))
        time.sleep(0.001)
    process.wait()
    return peak_kb / 1e3


def main() -> int:
    if sys.argv[1:] == ["--kernels"]:
        print(json.dumps(kernel_seconds()))
        return 0
    bandwidth = read_bandwidth()
    print(f"{ELEMENTS} elements, {settings()}, torch {torch.__version__}, numpy {np.__version__}")
    rows = statistics_rows(bandwidth)
    rows += [pair_row(), crc_row(bandwidth)]
    rows += portable_rows()
    rows += file_rows()
    width = max(len(row.what) for row in rows)
    print(f"{'':{width}}  {'msprobe':>12}  {'other':>22}  {'ratio':>7}  aim")
    for row in rows:
        mark = "reached" if row.reached else "MISSED"
        print(f"{row.what:{width}}  {row.ours:>12}  {row.other:>22}  {row.ratio:6.2f}x  {row.aim}: {mark}")
    missed = sum(not row.reached for row in rows)
    print(f"\n{len(rows) - missed} of {len(rows)} aims reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
