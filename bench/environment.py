"""What every measured process gets: the same threads, no log, no warnings."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / ".venv-reference/bin/python"
THREADS = 2


def environment(python: Path | None = None) -> dict[str, str]:
    """The environment for our binary, or for an interpreter."""
    given = dict(os.environ)
    if python == REFERENCE:
        # A path to our package would have us measured twice.
        given.pop("PYTHONPATH", None)
    threads = {name: str(THREADS) for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return {**given, **threads, "MSPROBE_LOG_LEVEL": "4", "PYTHONWARNINGS": "ignore"}


def figure(seconds: float) -> str:
    """A duration at reading precision."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"
