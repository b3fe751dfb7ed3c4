"""Trains a small model with collection on: ``train.py DUMP_PATH good`` or ``train.py DUMP_PATH broken``.

Both runs have the same seed and data. In the broken one, one layer computes in bfloat16 where it should not,
as a port to another device might. Its loss looks healthy all the same.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

from msprobe.pytorch import PrecisionDebugger, seed_all

STEPS = 5


class Linear(nn.Linear):  # type: ignore[misc]
    """A linear layer that can be broken."""

    broken = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.broken:
            return nn.functional.linear(x.bfloat16(), self.weight.bfloat16(), self.bias.bfloat16()).float()
        return super().forward(x)


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = Linear(width, 2 * width)
        self.down = Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))
        self.head = Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main() -> None:
    dump_path, kind = sys.argv[1:]
    seed_all(0)
    # Level L0 records what goes in and out of every layer, forward and backward; here of the first step.
    debugger = PrecisionDebugger(task="tensor", dump_path=dump_path, level="L0", step=[0])
    model = Model(width=32, classes=4)
    model.blocks[1].up.broken = kind == "broken"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    teacher = torch.randn(32, 4)
    losses = []
    for _ in range(STEPS):
        x = torch.randn(64, 32)
        y = (x @ teacher).argmax(dim=1)
        debugger.start(model)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()
        losses.append(loss.item())
    print("losses:", " ".join(f"{loss:.4f}" for loss in losses))


main()
