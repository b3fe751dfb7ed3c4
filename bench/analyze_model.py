"""The model behind the seed of the NaN analysis: a transformer block whose parts talk to other ranks.

A block exchanges activations with its neighbour, gathers them within a group and sums them over all ranks.
The NaN is born between the last two, so that it reaches everyone at once by the sum.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def split(y: torch.Tensor) -> torch.Tensor:
            return y.reshape(*y.shape[:2], self.heads, -1).transpose(1, 2)

        parts = split(self.query(x)), split(self.key(x)), split(self.value(x))
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int, rank: int, group: Any) -> None:
        super().__init__()
        self.peer, self.group = 1 - rank, group
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.gelu, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        theirs = torch.zeros_like(x)
        sent = dist.isend(x.detach(), dst=self.peer)
        dist.irecv(theirs, src=self.peer).wait()
        sent.wait()
        x = x + theirs
        parts = [torch.zeros_like(theirs) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(parts, x.detach(), group=self.group)
        x = x + torch.stack(parts).mean(0)
        y = self.down(self.gelu(self.up(self.norm2(x)))) * torch.log(scale)
        total = y.detach().clone()
        dist.all_reduce(total, group=dist.group.WORLD)
        return x + y + total


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int, rank: int) -> None:
        super().__init__()
        self.group = dist.new_group(list(range(dist.get_world_size())))
        self.blocks = nn.ModuleList([Block(width, heads, rank, self.group)])

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x, scale)
        return x

    def step(self, x: torch.Tensor, scale: torch.Tensor) -> None:
        """Forward, backward, and the gradients summed in the group and then over all."""
        self(x, scale).pow(2).mean().backward()
        gradient = torch.cat([one.grad.reshape(-1) for one in self.parameters() if one.grad is not None])
        dist.all_reduce(gradient, group=self.group)
        dist.all_reduce(gradient, group=dist.group.WORLD)
