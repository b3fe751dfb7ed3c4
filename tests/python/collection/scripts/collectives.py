"""Two ranks over gloo: every collective, DDP, FSDP2 and DTensor, with or without the tool.

`python -m … MODE PORT`; each rank leaves its digests in `result{rank}.json`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Callable

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

from tests.python.collection.scripts.attach import attach, digest

WORLD = 2


def own(rank: int, *shape: int) -> Any:
    size = torch.Size(shape).numel()
    return torch.sin(torch.arange(size, dtype=torch.float32) + rank).reshape(shape)


def empty(count: int = WORLD) -> list[Any]:
    return [torch.zeros(3) for _ in range(count)]


def send_recv(rank: int) -> list[Any]:
    t = own(rank, 3)
    if rank == 0:
        dist.send(t, 1)
    else:
        dist.recv(t, 0)
    return [t]


def isend_irecv(rank: int) -> list[Any]:
    """Both directions in flight, waited for later."""
    given, taken = own(rank, 3), torch.zeros(3)
    works = [dist.isend(given, 1 - rank), dist.irecv(taken, 1 - rank)]
    torch.neg(given)
    waited = [work.wait() for work in works]
    assert [type(value) for value in waited] == EXPECTED_WAIT["p2p"], waited
    return [taken]


def batch(rank: int) -> list[Any]:
    given, taken = own(rank, 3), torch.zeros(3)
    ops = [dist.P2POp(dist.isend, given, 1 - rank), dist.P2POp(dist.irecv, taken, 1 - rank)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return [taken]


def all_reduce_async(rank: int) -> list[Any]:
    t = own(rank, 3)
    work = dist.all_reduce(t, async_op=True)
    torch.neg(torch.ones(3))
    value = work.wait()
    assert type(value) is EXPECTED_WAIT["collective"][0], value
    assert work.is_completed()
    return [t]


def all_reduce_never_waited(rank: int) -> list[Any]:
    t = torch.ones(3)
    work = dist.all_reduce(t, async_op=True)
    dist.barrier()
    assert work is not None
    return []


def gather(rank: int) -> list[Any]:
    parts = empty() if rank == 0 else None
    dist.gather(own(rank, 3), parts, dst=0)
    return parts or []


def scatter(rank: int) -> list[Any]:
    t = torch.zeros(3)
    dist.scatter(t, [own(0, 3), own(1, 3)] if rank == 0 else None, src=0)
    return [t]


def into(call: Callable[[Any], Any], *shape: int) -> list[Any]:
    t = torch.zeros(shape)
    call(t)
    return [t]


def filled(call: Callable[[list[Any]], Any]) -> list[Any]:
    parts = empty()
    call(parts)
    return parts


def changed(rank: int, call: Callable[[Any], Any]) -> list[Any]:
    t = own(rank, 3)
    call(t)
    return [t]


COLLECTIVES: dict[str, Callable[[int], list[Any]]] = {
    "send": send_recv,
    "isend": isend_irecv,
    "batch_isend_irecv": batch,
    "broadcast": lambda rank: changed(rank, lambda t: dist.broadcast(t, src=1)),
    "all_reduce": lambda rank: changed(rank, lambda t: dist.all_reduce(t, op=dist.ReduceOp.MAX)),
    "all_reduce_async": all_reduce_async,
    "all_reduce_never_waited": all_reduce_never_waited,
    "reduce": lambda rank: changed(rank, lambda t: dist.reduce(t, dst=0))[: 1 - rank],
    "all_gather": lambda rank: filled(lambda parts: dist.all_gather(parts, own(rank, 3))),
    "gather": gather,
    "scatter": scatter,
    "all_gather_into_tensor": lambda rank: into(lambda t: dist.all_gather_into_tensor(t, own(rank, 3)), 6),
    "_all_gather_base": lambda rank: into(lambda t: dist._all_gather_base(t, own(rank, 3)), 6),
    "reduce_scatter": lambda rank: into(lambda t: dist.reduce_scatter(t, [own(rank, 3), own(rank, 3)]), 3),
    "reduce_scatter_tensor": lambda rank: into(lambda t: dist.reduce_scatter_tensor(t, own(rank, 6)), 3),
    "_reduce_scatter_base": lambda rank: into(lambda t: dist._reduce_scatter_base(t, own(rank, 6)), 3),
    "all_to_all_single": lambda rank: into(lambda t: dist.all_to_all_single(t, own(rank, 6)), 6),
    "all_to_all": lambda rank: filled(lambda parts: dist.all_to_all(parts, [own(rank, 3), own(rank + 9, 3)])),
}

# What Work.wait gives without any tool.
EXPECTED_WAIT: dict[str, list[type]] = {"p2p": [bool, bool], "collective": [bool]}


def collectives(rank: int, debugger: Any) -> dict[str, str]:
    told: dict[str, str] = {}
    debugger.start(model=nn.Sequential(nn.Linear(1, 1)))
    for name, call in COLLECTIVES.items():
        told[name] = digest(call(rank))
    debugger.stop()
    debugger.step()
    return told


def small() -> Any:
    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))


def train(rank: int, debugger: Any, model: Any) -> dict[str, str]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    losses = []
    for step in range(2):
        debugger.start(model=model)
        loss = model(own(rank + step, 3, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        debugger.stop()
        debugger.step()
        losses.append(loss.detach())
    parameters = [p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters()]
    return {"loss": digest(losses), "parameters": digest(parameters)}


def sharded(rank: int, debugger: Any) -> dict[str, str]:
    mesh = init_device_mesh("cpu", (WORLD,))
    model = small()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return train(rank, debugger, fully_shard(model, mesh=mesh))


def dtensors(rank: int, debugger: Any) -> dict[str, str]:
    mesh = init_device_mesh("cpu", (WORLD,))
    whole = torch.arange(8.0).reshape(4, 2)
    given = [
        distribute_tensor(whole, mesh, [Shard(0)]),
        distribute_tensor(whole, mesh, [Replicate()]),
        DTensor.from_local(whole + rank, mesh, [Partial()]),
    ]
    debugger.start(model=nn.Sequential(nn.Linear(1, 1)))
    returned = [torch.neg(value) for value in given]
    debugger.stop()
    debugger.step()
    return {"values": digest(value.to_local() for value in returned)}


def work(rank: int, mode: str, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    debugger = attach(mode)
    told = {
        "collectives": collectives(rank, debugger),  # step 0
        "ddp": train(rank, debugger, nn.parallel.DistributedDataParallel(small())),  # steps 1, 2
        "fsdp": sharded(rank, debugger),  # steps 3, 4
        "dtensor": dtensors(rank, debugger),  # step 5
    }
    Path(f"result{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(sys.argv[1], int(sys.argv[2])), nprocs=WORLD)
