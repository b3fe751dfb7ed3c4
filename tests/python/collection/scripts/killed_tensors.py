"""Trainings that save tensors and are killed at any moment: `python -m … SIGNAL SEED COUNT SPAN_SECS`.

Each has a folder of its own.
"""

from __future__ import annotations

import importlib
import random
import sys
import time
from pathlib import Path

import torch
from torch import nn

from tests.python.collection.scripts import forked
from tests.python.collection.scripts.attach import attach

# No test lets a process live longer.
STEPS = 1000


def train() -> None:
    """Gradients come in several passes; large tensors take the writers longer than the training."""
    torch.set_num_threads(1)
    debugger = attach("mix", task="tensor")
    model = nn.Sequential(nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.linspace(-1, 1, 64 * 700).reshape(700, 64)
    for _ in range(STEPS):
        debugger.start(model=model)
        optimizer.zero_grad()
        for micro in range(3):
            loss = model(x + micro).square().mean()
            loss.backward()
        optimizer.step()
        debugger.stop()
        debugger.step()


def main(number: int, seed: int, count: int, span_secs: float) -> None:
    importlib.import_module("msprobe.pytorch")
    moments = random.Random(seed)
    for index in range(count):
        folder = Path(f"run{index}")
        pid = forked.start(folder, train)
        # From the first file on: what comes before is the same each time.
        while not any(folder.glob("dump/*/rank/dump.json")):
            time.sleep(0.005)
        time.sleep(span_secs * (index + moments.random()) / count)
        forked.kill(pid, number, folder)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
