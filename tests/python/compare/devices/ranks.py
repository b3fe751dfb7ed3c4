"""Trainings of two processes that split the layers in the middle of a model, as in tensor parallelism.

Run by ``corpus.py``: python -m tests.python.compare.devices.ranks ROOT MODE CASE ...

Each rank has hidden units of its own, and partial results are summed up by ``all_reduce``. One rank may go on
without the sum; it takes part in the collective, so that the other one does not wait for ever.
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


def split(module: nn.Module) -> None:
    """What the module returns is the sum of what it returns in all ranks."""
    original = module.forward
    module.leaves_out_sum = False

    def forward(*args: Any, **kwargs: Any) -> torch.Tensor:
        partial = original(*args, **kwargs)
        total = partial.detach().float()
        if module.leaves_out_sum:
            # Not recorded, and nobody looks at the result.
            dist.group.WORLD.allreduce([torch.ops.aten.clone.default(total)]).wait()
        else:
            dist.all_reduce(total)
        # The gradient flows through this rank's part.
        return torch.add(partial, torch.sub(total.to(partial.dtype), partial.detach()))

    module.forward = forward


def process(rank: int, port: int, root: str, mode: str, names: tuple[str, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    from . import worker

    # A file of configuration for each process: they do not wait for each other.
    debugger = worker.make_debugger(Path(root) / ".golden" / "config" / f"{mode}-{rank}", mode)
    from .cases import all_cases

    for case in all_cases():
        if case.name not in names or case.world == 1:
            continue
        golden = Path(root) / ".golden" / case.golden_key / mode
        folder = Path(root) / case.name / mode
        train(debugger, golden, case, rank, is_target=False)
        train(debugger, folder / "target", case, rank, is_target=True)
        if rank == 0:
            worker.share(golden, folder / "golden")
            print(case.name, mode, flush=True)
    dist.barrier()
    dist.destroy_process_group()


def train(debugger: Any, path: Path, case: Any, rank: int, *, is_target: bool) -> None:
    from contextlib import nullcontext

    from ..faults import inject
    from . import models
    from .cases import RANKS
    from .sums import other_device

    partial = path.with_name(f".{path.name}")
    is_done = path.exists()
    # Nobody starts before all have looked.
    dist.barrier()
    if is_done:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    model, batch = models.build(case.model, case.dtype, case.seed)
    torch.manual_seed(case.seed + 10 + rank)
    for layer in range(2):
        module = model.get_submodule(RANKS[case.model].format(layer))
        for parameter in module.parameters():
            # The other rank's hidden units.
            parameter.data.normal_(std=0.09)
        split(module)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    is_faulty = is_target and case.expected is not None and rank == case.expected.rank
    injection = case.inject if is_faulty else inject.nothing
    debugger.service.config.dump_path = str(partial)
    debugger.set_init_step(0)
    torch.manual_seed(1000)
    with other_device() if is_target else nullcontext(), injection(model, batch):
        debugger.start(model)
        models.train_step(model, batch, case.dtype, optimizer)
        debugger.stop()
        debugger.step()
    dist.barrier()
    if rank == 0:
        partial.rename(path)
    dist.barrier()


def main(root: str, mode: str, *names: str) -> None:
    mp.spawn(process, (free_port(), root, mode, names), nprocs=WORLD)


if __name__ == "__main__":
    main(*sys.argv[1:])
