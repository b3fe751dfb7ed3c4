"""A training in a process of its own, which is going to be killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path


def start(folder: Path, train: Callable[[], None]) -> int:
    """Makes the folder and trains in it, all that is printed in `log.txt`. The process."""
    folder.mkdir()
    pid = os.fork()
    if pid:
        return pid
    os.chdir(folder)
    log = os.open("log.txt", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        train()
    finally:
        os._exit(9)


def kill(pid: int, number: int, folder: Path) -> None:
    """It has to be alive until then."""
    os.kill(pid, number)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), (folder / "log.txt").read_text()
