"""Trainings of two processes, one of which has the fault.

Run by ``generate.py``: python -m tests.python.compare.faults.ranks OUT LEVEL TASK [CASE ...]

Layers are split, as in tensor parallelism: each rank has half of the hidden units, and partial results are
summed by ``all_reduce``. So the other rank gets wrong results too, from a collective whose own input is
right.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from tests.python.collection.runs import free_port

WORLD = 2


class Half(nn.Module):  # type: ignore[misc]
    """This rank's part of two layers, and the sum of all parts."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, width)
        self.act = nn.GELU()
        self.down = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        partial = self.down(self.act(self.up(x)))
        total = partial.detach().clone()
        dist.all_reduce(total)
        # The gradient flows through this rank's part.
        return torch.add(partial, torch.sub(total, partial.detach()))


class Split(nn.Module):  # type: ignore[misc]
    """Two such blocks with normalisation between them."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.first = Half(width)
        self.norm = nn.LayerNorm(width)
        self.second = Half(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.norm(self.first(x))).square().mean()


def build(rank: int) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    torch.manual_seed(31)
    data = torch.randn(8, 24)
    torch.manual_seed(32 + rank)
    return Split(), {"x": data}


def process(rank: int, port: int, out: str, level: str, task: str, names: tuple[str, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    from .worker import make_debugger

    folder = Path(out) / f"{level}-{task}"
    # A file of configuration for each process: they do not wait for each other.
    debugger = make_debugger(folder / f"ranks{rank}", level, task)
    from .faults import all_cases

    done = set()
    for case in all_cases():
        if (
            case.world == 1
            or level not in case.levels
            or task not in case.tasks
            or (names and case.name not in names)
        ):
            continue
        if case.golden_key not in done:
            done.add(case.golden_key)
            train(debugger, folder / "golden" / case.golden_key, case, rank, is_target=False)
        train(debugger, folder / "target" / case.name, case, rank, is_target=True)
    dist.barrier()
    dist.destroy_process_group()


def train(debugger: Any, path: Path, case: Any, rank: int, *, is_target: bool) -> None:
    from . import inject, models

    model, batch = build(rank)
    is_faulty = is_target and rank == case.expected.rank
    debugger.service.config.dump_path = str(path)
    debugger.set_init_step(0)
    with case.inject(model, batch) if is_faulty else inject.nothing(model, batch):
        debugger.start(model)
        models.train_step(model, batch)
        debugger.stop()
        debugger.step()


def main(out: str, level: str, task: str, *names: str) -> None:
    mp.spawn(process, (free_port(), out, level, task, names), nprocs=WORLD)


if __name__ == "__main__":
    main(*sys.argv[1:])
