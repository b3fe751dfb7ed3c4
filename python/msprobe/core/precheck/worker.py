"""A process of a pool: makes a checker, then runs the operators it is told, until nobody tells it any."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import socket
import sys
from typing import Any

from msprobe.core.precheck.channel import Channel

_PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> int:
    """Speaks over a socket that is open already."""
    # Ctrl-C goes to the whole group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    channel = Channel(socket.socket(fileno=descriptor))
    start: Any = channel.receive()
    if start is None:
        return 0
    try:
        module, _, name = start["factory"].partition(":")
        checker = getattr(importlib.import_module(module), name)(**start["options"])
    except Exception as error:
        channel.send({"failure": f"{type(error).__name__}: {error}"})
        return 1
    channel.send({"ready": True})
    while True:
        position = channel.receive()
        if position is None:
            return 0
        channel.send({"outcome": checker(position)})


def _end_with_parent() -> None:
    """On Linux a worker busy with an operator does not outlive whoever would take the outcome."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
