"""Trains the same small model twice, from the same seed and on the same data.

The second run has one layer computing in bfloat16 where it should not, as a port to another device might.
Writes ``good.pt`` and ``broken.safetensors`` into the folder given.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn


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


def train(broken: bool) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    blocks = nn.ModuleList(Block(32) for _ in range(3))
    head = nn.Linear(32, 4)
    model = nn.ModuleDict({"blocks": blocks, "head": head})
    if broken:
        blocks[1].low_precision = True
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        x, y = torch.randn(64, 32), torch.randint(0, 4, (64,))
        for block in blocks:
            x = block(x)
        loss = nn.functional.cross_entropy(head(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return dict(model.state_dict())


def main() -> None:
    out = Path(sys.argv[1])
    torch.save(train(broken=False), out / "good.pt")
    save_file(train(broken=True), str(out / "broken.safetensors"))


main()
