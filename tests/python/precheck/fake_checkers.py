"""Checkers for tests of the pool: operators that end well, crash, hang, or are killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, Callable


def make(device: Any, trace: str, secs: float = 0.0, bad: Any = None) -> Callable[[int], str]:
    """Tells in a file what runs where."""
    bad = bad or {}

    def check(position: int) -> str:
        with Path(trace).open("a") as file:
            file.write(f"{position} {device} {os.getpid()}\n")
        act = bad.get(str(position))
        if act == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif act == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif act == "exit":
            os._exit(3)
        elif act == "hang":
            time.sleep(3600)
        time.sleep(secs * (10 if position == 0 else 1))
        return f"outcome {position}"

    return check


def fail(**_options: Any) -> Any:
    """Cannot be made."""
    raise ValueError("no such device")


def vanish(**_options: Any) -> Any:
    """Ends its process while it is made."""
    os._exit(7)
