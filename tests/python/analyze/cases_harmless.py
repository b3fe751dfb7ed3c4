"""What is not finite on purpose or by nature, alone and with a real fault behind it."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from .parts import WIDTH, Apply, bad_on, linear, ramp
from .registry import Arrival, Born, Run, case, everywhere


def causal_mask(size: int) -> Any:
    return torch.triu(torch.full((size, size), float("-inf")), diagonal=1)


class Attention(nn.Module):  # type: ignore[misc]
    """One head with a mask that is added, filled in, or given to the fused function."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.project = linear()

    def forward(self, x: Any) -> Any:
        q = self.project(x)
        size = x.shape[0]
        if self.how == "fused":
            mask = causal_mask(size)
            whole = (1, 1, size, WIDTH)
            q, k, v = (value.reshape(whole) for value in (q, x, x))
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).reshape(size, WIDTH)
        scores = torch.matmul(q, x.transpose(0, 1))
        if self.how == "added":
            scores = scores + causal_mask(size)
        else:
            upper = torch.triu(torch.ones(size, size), diagonal=1).bool()
            scores = scores.masked_fill(upper, float("-inf"))
        return torch.matmul(torch.softmax(scores, dim=-1), x)


class Masked(nn.Module):  # type: ignore[misc]
    """Attention, then a function that fails on negative numbers."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.attention = Attention(how)
        self.last = Apply(lambda x: torch.log(x))  # born

    def forward(self, x: Any) -> Any:
        return self.last(self.attention(x))


def trained(run: Run, how: str, bad: int) -> None:
    """Forward and backward; ``bad`` is the rank with negative data, -1 for none."""
    model = Masked(how)
    x = bad_on(bad, run.rank) * 0.1
    with run.window(model):
        y = model(x)  # ran
        y.sum().backward()
        y = y.detach()
        dist.all_reduce(y)


LOG = everywhere(Born(1, "Torch.log.0.forward", ("nan",)))
TOLD = (Arrival(0, "Distributed.all_reduce.0.forward", 1),)
ADDED = everywhere(levels=("L1", "mix"))
FILLED_NAMES = dict.fromkeys(("L1", "mix"), ("Tensor.masked_fill.0.forward",))
ADDED_NAMES = dict.fromkeys(
    ("L1", "mix"), ("Torch.full.0.forward|Torch.triu.0.forward|Tensor.__add__.0.forward",)
)


@case(2, LOG, arrivals=TOLD, harmless=ADDED_NAMES)
def mask_added(run: Run) -> None:
    trained(run, "added", 1)


@case(2, LOG, arrivals=TOLD, harmless=FILLED_NAMES)
def mask_filled(run: Run) -> None:
    trained(run, "filled", 1)


@case(2, LOG, arrivals=TOLD)
def mask_fused(run: Run) -> None:
    trained(run, "fused", 1)


@case(2, ADDED, harmless=ADDED_NAMES)
def only_mask_added(run: Run) -> None:
    trained(run, "added", -1)


@case(2, ADDED, harmless=FILLED_NAMES)
def only_mask_filled(run: Run) -> None:
    trained(run, "filled", -1)


@case(2, ADDED)
def only_mask_fused(run: Run) -> None:
    trained(run, "fused", -1)


@case(2, everywhere(Born(0, "Torch.softmax.0.forward", ("nan",)), levels=("L1",)))
def masked_row(run: Run) -> None:
    """A row of nothing but -Inf: the softmax has no answer, and is where NaN comes from."""
    with run.window():
        scores = torch.mul(ramp(), 0.5)
        hidden = torch.zeros(2, WIDTH)
        if run.rank == 0:
            hidden[1] = 1.0
        else:
            hidden[1, 2:] = 1.0
        scores = scores.masked_fill(hidden.bool(), float("-inf"))
        y = torch.softmax(scores, dim=-1)  # born
        torch.sum(y)


def received(run: Run, sent: Any) -> None:
    """Everything arrives in memory that holds NaN beforehand."""
    taken, parts = torch.full((2, 4), float("nan")), [torch.full((2, 4), float("nan")) for _ in range(2)]
    shared = torch.full((2, 4), float("nan"))
    with run.window():
        y = torch.log(sent)  # born
        if run.rank == 0:
            dist.send(torch.mul(ramp(), 2.0), 1)
        else:
            dist.recv(taken, 0)
            torch.neg(taken)
        if run.rank == 1:
            shared = y
        dist.broadcast(shared, src=1)
        torch.neg(shared)
        dist.all_gather(parts, y)
        torch.cat(parts)


@case(2, everywhere(levels=("L1",)))
def garbage_buffers(run: Run) -> None:
    """Receive buffers are full of NaN; what arrives is not."""
    received(run, ramp())


@case(
    2,
    everywhere(Born(1, "Torch.log.0.forward", ("nan",)), levels=("L1",)),
    arrivals=(Arrival(0, "Distributed.broadcast.0.forward", 1),),
)
def garbage_and_birth(run: Run) -> None:
    """The same buffers, and a NaN of rank 1 that arrives in one of them."""
    received(run, bad_on(1, run.rank))


@case(2, everywhere(levels=("L1",)), harmless={"L1": (r"Torch.empty.0.forward",)})
def uninitialised(run: Run) -> None:
    """torch.empty made inside the window; deterministic mode fills it with NaN."""
    torch.use_deterministic_algorithms(True)
    try:
        with run.window():
            buffer = torch.empty(2, WIDTH)
            buffer.copy_(ramp())
            torch.neg(buffer)
            dist.all_reduce(buffer)
    finally:
        torch.use_deterministic_algorithms(False)
