"""What the gradient probe costs: our package and the reference on the same model.

For each row three processes are alive: one trains without any tool, one with our probe, one with the
reference's. They take turns, some steps each, so that a busy moment of the machine hurts all of them; medians
are compared. A step is forward, backward and optimizer; files are written when the time ends, and removed
outside of it.

Run from the root with ``python -m bench.grad``. ``--quick`` takes fewer turns; ``--rows`` picks rows by a
part of their name.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.collection import WARM_UP, Side, verdict
from bench.environment import REFERENCE, read_options, settings

BOUNDS = [-0.1, -0.01, 0, 0.01, 0.1]


class GradSide(Side):
    worker = "bench/grad_worker.py"


class Row(NamedTuple):
    what: str
    level: str
    most: float | None
    """Our step time, in times of the bare one."""
    compact: bool = False


ROWS = [
    Row("gradient probe L0", "L0", 1.08),
    Row("gradient probe L1", "L1", 1.08),
    Row("gradient probe L2", "L2", 1.15),
    Row("L2, directions as bits", "L2", 1.15, compact=True),
]


def side(python: str, row: Row, folder: Path, name: str) -> GradSide:
    dump = str(folder / f"dump_{name}")
    section = {"grad_level": row.level, "bounds": BOUNDS, "compact_direction": row.compact}
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"task": "grad_probe", "dump_path": dump, "grad_probe": section}))
    return GradSide(python, {"config": str(path), "dump_path": dump})


def measure(row: Row, folder: Path, rounds: int) -> tuple[float, float, float | None, int]:
    """Seconds of a step without a tool, with ours and with the reference; bytes we write in a step."""
    bare = GradSide(sys.executable, {"config": None, "dump_path": None})
    ours = side(sys.executable, row, folder, "ours")
    reference = None
    # The reference has no such storage.
    if REFERENCE.exists() and not row.compact:
        reference = side(str(REFERENCE), row, folder, "reference")
    sides = [one for one in (bare, ours, reference) if one is not None]
    for one in sides:
        one.wait_until_ready()
    if reference is not None and reference.torch != bare.torch:
        raise RuntimeError(f"torch {bare.torch} here, {reference.torch} in .venv-reference: remove that one")
    written = 0
    for number in range(WARM_UP + rounds):
        turns = sides[number % len(sides) :] + sides[: number % len(sides)]
        answers = {one: one.work() for one in turns}
        written = answers[ours]["written"]
    for one in sides:
        one.close()
    return bare.median(), ours.median(), None if reference is None else reference.median(), written


def main() -> int:
    options = read_options(__doc__, "fewer turns")
    rounds = 3 if options.quick else 7
    place = options.place
    print(
        f"\nan MLP of 50M parameters, {settings()}; medians of {rounds} times 4 steps, files written\n"
        f"\n{'':<24} {'no tool':>11}  {'msprobe':>19}  {'reference':>20}  {'4 steps':>9}  aims"
    )
    reached: list[bool] = []
    for row in ROWS:
        if options.rows not in row.what:
            continue
        with tempfile.TemporaryDirectory(dir=place) as folder:
            bare, ours, reference, written = measure(row, Path(folder), rounds)
        theirs = "-" if reference is None else f"{reference * 1e3:8.1f} ms {reference / bare:6.2f}x"
        aim = ""
        if row.most is not None:
            reached.append(ours / bare <= row.most)
            aim = f"<= {row.most}x: {verdict(reached[-1])}"
        print(
            f"{row.what:<24} {bare * 1e3:8.1f} ms  {ours * 1e3:8.1f} ms {ours / bare:6.3f}x  {theirs:>20}"
            f"  {written / 1e6:6.0f} MB  {aim}",
            flush=True,
        )
    shutil.rmtree(place, ignore_errors=True)
    print(f"\n{sum(reached)} of {len(reached)} aims reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
