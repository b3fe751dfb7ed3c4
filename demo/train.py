"""Trains a small model with collection on: ``train.py DUMP_PATH good`` or ``train.py DUMP_PATH broken``.

Both runs have the same seed and data. In the broken one, one layer computes in bfloat16 where it should not,
as a port to another device might.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

from msprobe.pytorch import PrecisionDebugger, seed_all


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.low_precision = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.up(self.norm(x))
        if self.low_precision:
            hidden = hidden.bfloat16().float()
        return x + self.down(nn.functional.gelu(hidden))


def main() -> None:
    dump_path, kind = sys.argv[1:]
    seed_all(0)
    debugger = PrecisionDebugger(task="tensor", dump_path=dump_path, level="mix", step=[0, 1])
    model = nn.Sequential(Block(32), Block(32), Block(32), nn.Linear(32, 4))
    model[1].low_precision = kind == "broken"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        x, y = torch.randn(64, 32), torch.randint(0, 4, (64,))
        debugger.start(model)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()


main()
