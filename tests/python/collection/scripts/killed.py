"""Training processes killed at any moment: `python -m … SEED COUNT SPAN_SECS`, one folder per process.

Each leaves `marks.txt` (step, number of the call, time; written after the call was recorded) and
`killed.txt` (time).
"""

from __future__ import annotations

import importlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn

from tests.python.collection.scripts import forked
from tests.python.collection.scripts.attach import attach

CALLS_PER_STEP = 400
# No test lets a process live longer.
STEPS = 100


def train() -> None:
    """Steps of a second or less, with a mark after every call of torch.neg."""
    debugger = attach("mix")
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    x = torch.ones(4, 8)
    marks = os.open("marks.txt", os.O_WRONLY | os.O_CREAT, 0o600)
    for step in range(STEPS):
        debugger.start(model=model)
        for call in range(CALLS_PER_STEP):
            torch.neg(x)
            os.write(marks, f"{step} {call} {time.time()}\n".encode())
            if call % 20 == 0:
                model(x).sum().backward()
            time.sleep(0.001)
        debugger.stop()
        debugger.step()


def main(seed: int, count: int, span_secs: float) -> None:
    importlib.import_module("msprobe.pytorch")
    moments = random.Random(seed)
    for index in range(count):
        folder = Path(f"run{index}")
        # One moment in each part of the span.
        delay = span_secs * (index + moments.random()) / count
        pid = forked.start(folder, train)
        time.sleep(delay)
        killed = time.time()
        forked.kill(pid, signal.SIGKILL, folder)
        (folder / "killed.txt").write_text(str(killed))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
