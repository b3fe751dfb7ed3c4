"""One rank of a distributed training with the gradient probe: ``ranks.py KIND``, the rest in the environment.

Prints what the gradients were, as the optimizer saw them.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from msprobe.pytorch import PrecisionDebugger


def model() -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def train(trained: nn.Module, optimizer: Any, steps: int = 2) -> None:
    torch.manual_seed(10 + dist.get_rank())
    for _ in range(steps):
        optimizer.zero_grad()
        trained(torch.randn(4, 6)).square().mean().backward()
        optimizer.step()


def noted(optimizer: torch.optim.Optimizer, gradients: Any) -> list[dict[str, list[float]]]:
    """What `gradients()` says before each step, in the order of the calls."""
    steps: list[dict[str, list[float]]] = []
    optimizer.register_step_pre_hook(lambda *_: steps.append(gradients()))
    return steps


def flat(tensor: torch.Tensor) -> list[float]:
    values: list[float] = tensor.detach().float().reshape(-1).tolist()
    return values


def ddp() -> Any:
    plain = model()
    PrecisionDebugger.monitor(plain)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.1)
    steps = noted(optimizer, lambda: {name: flat(item.grad) for name, item in plain.named_parameters()})
    train(nn.parallel.DistributedDataParallel(plain), optimizer)
    return steps


def fsdp() -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    sharded: Any = model()
    # Before parameters become shards: the probe finds them again.
    PrecisionDebugger.monitor(sharded)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (sharded[0], sharded[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    optimizer = torch.optim.SGD(sharded.parameters(), lr=0.1)
    parameters = sharded.named_parameters
    steps = noted(
        optimizer, lambda: {name: flat(parameter.grad.to_local()) for name, parameter in parameters()}
    )
    train(sharded, optimizer)
    return steps


def tensors() -> Any:
    """Gradients with every placement, made by hand."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    holder = nn.Module()
    local = torch.full((2, 3), float(dist.get_rank() + 1))
    for name, placement in (("shard", Shard(0)), ("same", Replicate()), ("part", Partial())):
        made = DTensor.from_local(local, mesh, [placement], run_check=False)
        parameter = nn.Parameter(made.detach())
        parameter.grad = made
        holder.register_parameter(name, parameter)
    PrecisionDebugger.monitor(holder)
    # The optimizer is not to touch them: partial values cannot be added to.
    torch.optim.SGD([holder.get_parameter("shard")], lr=0.0).step()
    return flat(local)


def partitions() -> Any:
    """What ZeRO makes of ten elements on two ranks: the second parameter is cut."""
    rank = dist.get_rank()
    holder = nn.Module()
    holder.register_parameter("a", nn.Parameter(torch.zeros(2, 2, dtype=torch.bfloat16)))
    holder.register_parameter("b", nn.Parameter(torch.zeros(6, dtype=torch.bfloat16)))
    PrecisionDebugger.monitor(holder)
    flat_partition = nn.Parameter(torch.zeros(5))
    pieces = [{"a": (0, 4), "b": (4, 1)}, {"b": (0, 5)}][rank]
    for name, parameter in holder.named_parameters():
        here = pieces.get(name)
        fragment = None if here is None else SimpleNamespace(hp_fragment=flat_partition.narrow(0, *here))
        setattr(parameter, "_hp_mapping", fragment)  # noqa: B010
    optimizer = torch.optim.SGD([flat_partition], lr=0.0)
    for _ in range(2):
        flat_partition.grad = torch.arange(5.0) - 2 + rank
        optimizer.step()
    return flat(torch.arange(5.0) - 2 + rank)


def zero(stage: int) -> Any:
    deepspeed = importlib.import_module("deepspeed")
    # Its kernels would be compiled first, which takes minutes; without them it uses gloo.
    deepspeed.ops.__compatible_ops__.clear()
    plain = model()
    PrecisionDebugger.monitor(plain)
    named = list(plain.parameters())
    groups = [{"params": named[:2]}, {"params": named[2:], "lr": 0.05}]
    inner = torch.optim.Adam(groups, lr=0.1)
    settings = {
        "train_micro_batch_size_per_gpu": 4,
        "zero_optimization": {"stage": stage},
        "bf16": {"enabled": True},
    }
    engine, *_ = deepspeed.initialize(model=plain, optimizer=inner, config=settings)
    whole = []
    torch.manual_seed(10 + dist.get_rank())
    for _ in range(2):
        loss = engine(torch.randn(4, 6).bfloat16()).float().square().mean()
        engine.backward(loss)
        get = deepspeed.utils.safe_get_full_grad
        whole.append({name: flat(get(parameter)) for name, parameter in plain.named_parameters()})
        engine.step()
    return whole


def main() -> None:
    dist.init_process_group("gloo")
    PrecisionDebugger("config.json")
    kinds: dict[str, Callable[[], Any]] = {
        "ddp": ddp,
        "fsdp": fsdp,
        "tensors": tensors,
        "partitions": partitions,
        "zero1": lambda: zero(1),
        "zero2": lambda: zero(2),
    }
    steps = kinds[sys.argv[1]]()
    print("RESULT " + json.dumps(steps), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
