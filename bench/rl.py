"""What key data of reinforcement learning costs: ours and the reference on the same data, in one run.

Every figure comes from a process of its own: best of several steps after one to warm up, for all alike.
Files go below the project and are removed afterwards.

``--quick`` takes little data, to see that everything works; ``--rows`` picks cases by a part of their name.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench.environment import ROOT, environment, figure, read_options, settings

RUNS = 3
WIDTH = 42


class Sizes(NamedTuple):
    """How much of everything."""

    keys: int
    elements: int


FULL = Sizes(8, 4 << 20)
QUICK = Sizes(8, 1 << 16)


class Bench:
    """Where things are, and the aims met so far."""

    def __init__(self, place: Path, reference: Path) -> None:
        self.place = place
        self.reference = reference
        self.reached: list[bool] = []

    def aim(self, text: str, reached: bool) -> str:
        self.reached.append(reached)
        return f"{text}: {'reached' if reached else 'MISSED'}"

    def work(self, python: Path, order: dict[str, Any]) -> dict[str, Any]:
        """A job of rl_worker.py in a folder of its own, and its answer."""
        with tempfile.TemporaryDirectory(dir=self.place) as folder:
            order = {"runs": RUNS, "folder": f"{folder}/dump", **order}
            command = [str(python), str(ROOT / "bench/rl_worker.py"), json.dumps(order)]
            done = subprocess.run(
                command, env=environment(python), capture_output=True, text=True, check=False
            )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def theirs(self, order: dict[str, Any]) -> dict[str, Any] | None:
        """A job of the reference if it is installed."""
        return self.work(self.reference, order) if self.reference.exists() else None


def line(what: str, ours: float, theirs: float | None, aims: list[str]) -> None:
    other = "-" if theirs is None else figure(theirs)
    ratio = "-" if theirs is None else f"{theirs / ours:.1f}x"
    print(f"{what:<{WIDTH}} {figure(ours):>10}  {other:>10}  {ratio:>8}  {', '.join(aims)}", flush=True)


def save_case(bench: Bench, keys: int, elements: int) -> None:
    """SingleSave: what the caller waits for, and how long it takes until everything is on disk."""
    size = {"keys": keys, "elements": elements}
    plain = bench.work(Path(sys.executable), {"job": "numpy_save", **size})
    ours = bench.work(Path(sys.executable), {"job": "save", **size})
    theirs = bench.theirs({"job": "save", **size})
    what = f"save, {keys} x {elements / (1 << 20):g}M float32"
    aims = []
    if theirs is not None:
        share = ours["caller"] / theirs["caller"]
        aims.append(bench.aim(f"{share:.2f} of the reference, <= 0.25", share <= 0.25))
    line(f"{what}, caller", ours["caller"], theirs["caller"] if theirs else None, aims)
    line(f"{what}, caller, first step", ours["first_caller"], theirs["first_caller"] if theirs else None, [])
    share = ours["total"] / plain["total"]
    aims = [bench.aim(f"{share:.2f} of np.save ({figure(plain['total'])}), <= 1.3", share <= 1.3)]
    line(f"{what}, on disk", ours["total"], theirs["total"] if theirs else None, aims)


def main() -> int:
    options = read_options(__doc__, "little data", "reference")
    sizes = QUICK if options.quick else FULL
    place = options.place
    print(
        f"\nkey data of reinforcement learning, {settings()}\n"
        f"\n{'':<{WIDTH}} {'msprobe':>10}  {'reference':>10}  {'ratio':>8}  aims"
    )
    with tempfile.TemporaryDirectory(dir=place) as folder:
        bench = Bench(Path(folder), options.reference)
        cases: dict[str, Callable[[], None]] = {
            "save": lambda: save_case(bench, sizes.keys, sizes.elements),
        }
        for name, case in cases.items():
            if options.rows in name:
                case()
    shutil.rmtree(place, ignore_errors=True)
    print(f"\n{sum(bench.reached)} of {len(bench.reached)} aims reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
