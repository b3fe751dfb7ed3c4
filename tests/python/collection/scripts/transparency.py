"""Train every model in one mode and print digests of losses, gradients, parameters and random state."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from tests.python.collection.scripts.attach import attach, digest, result
from tests.python.collection.scripts.models import MODELS

STEPS = 5


def train(name: str, debugger: Any) -> dict[str, str]:
    torch.manual_seed(7)
    build, shape = MODELS[name]
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses, gradients = [], []
    for _ in range(STEPS):
        x = torch.randn(shape)
        debugger.start(model=model)
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        debugger.stop()
        debugger.step()
        losses.append(loss.detach().clone())
        gradients += [p.grad.clone() if p.grad is not None else None for p in model.parameters()]
    state = [*model.parameters(), *model.buffers()]
    return {
        "loss": digest(losses),
        "gradients": digest(gradients),
        "parameters": digest(state),
        "random": digest([torch.get_rng_state()]),
    }


if __name__ == "__main__":
    tool = attach(sys.argv[1])
    result({name: train(name, tool) for name in MODELS})
