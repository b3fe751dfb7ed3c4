"""What every measured process gets: the settings of a machine on which nobody set anything, no log.

How many threads there are and how they wait is left to PyTorch, OpenMP and us, as on a user's machine:
threads that are told to sleep at once would slow the bare step and flatter every ratio.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / ".venv-reference/bin/python"
# Whoever runs the bench may have set some of these for other reasons.
THREAD_SETTINGS = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "RAYON_", "MSPROBE_")


def environment(python: Path | None = None) -> dict[str, str]:
    """The environment for our binary, or for an interpreter."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(THREAD_SETTINGS)}
    if python == REFERENCE:
        # A path to our package would have us measured twice.
        given.pop("PYTHONPATH", None)
    return {**given, "MSPROBE_LOG_LEVEL": "4", "PYTHONWARNINGS": "ignore"}


def read_options(doc: str | None, quick: str, *paths: str) -> argparse.Namespace:
    """The options every bench has, and ``place``, where it writes.

    ``quick`` says what there is less of then; ``paths`` are those that can be given: reference, binary.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    known = {
        "reference": (REFERENCE, "the interpreter of the reference"),
        "binary": (ROOT / "target/release/msprobe", "our binary"),
    }
    for name in paths:
        default, about = known[name]
        parser.add_argument(f"--{name}", type=Path, default=default, help=about)
    options = parser.parse_args()
    if not getattr(options, "reference", REFERENCE).exists():
        print("the reference is not installed: make .venv-reference/.package")
    options.place = ROOT / "bench_out"
    options.place.mkdir(exist_ok=True)
    return options


def settings() -> str:
    """What the figures were measured under, for the head of a table."""
    return f"default thread settings on {os.cpu_count()} cores"


def figure(seconds: float) -> str:
    """A duration at reading precision."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"
