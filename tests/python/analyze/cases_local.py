"""Births on a rank: in forward, backward, parameters and data, at every depth of modules."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from .parts import WIDTH, Apply, bad_on, between, linear, ramp
from .registry import Arrival, Born, Run, case, everywhere

APPLY = ("Module.1.Apply.forward.0",)
REDUCED = "Distributed.all_reduce.0.forward"


def produced(rank: int, api: str, *values: str) -> dict[str, tuple[Born, ...]]:
    """An API called by module 1 of a model made by ``between``. The model is never recorded."""
    return {
        "L0": (Born(rank, APPLY[0], values),),
        "L1": (Born(rank, api, values),),
        "mix": (Born(rank, api, values, modules=APPLY),),
    }


@case(2, produced(1, "Torch.log.0.forward", "nan"), arrivals=(Arrival(0, REDUCED, 1),))
def forward_log(run: Run) -> None:
    """NaN in forward of rank 1; the sum over the ranks takes it to rank 0."""
    model = between(lambda x: torch.log(x))  # born
    x = bad_on(1, run.rank)
    with run.window(model):
        y = model(x)  # ran
        dist.all_reduce(y)
        torch.neg(y)


@case(2, produced(0, "Torch.exp.0.forward", "inf"), arrivals=(Arrival(1, REDUCED, 0),))
def forward_exp(run: Run) -> None:
    """Inf from exp, on rank 0. The sum of it and of numbers is Inf again."""
    model = between(lambda x: torch.exp(x))  # born
    x = ramp() * (100.0 if run.rank == 0 else 1.0)
    with run.window(model):
        y = model(x)  # ran
        dist.all_reduce(y)


@case(2, produced(1, "Torch.div.0.forward", "inf"), arrivals=(Arrival(0, REDUCED, 1),))
def forward_division(run: Run) -> None:
    """Inf from a division by zero."""
    divisor = torch.full((WIDTH,), 0.0 if run.rank == 1 else 2.0)
    model = between(lambda x: torch.div(x, divisor))  # born
    with run.window(model):
        y = model(ramp())  # ran
        dist.all_reduce(y)


@case(2, everywhere(Born(1, "Torch.matmul.0.forward", ("inf",)), levels=("L1",)))
def half_matmul(run: Run) -> None:
    """Products of float16 beyond its largest number."""
    x = torch.full((WIDTH, WIDTH), 200.0 if run.rank == 1 else 2.0, dtype=torch.float16)
    with run.window():
        y = torch.matmul(x, x)  # born
        torch.neg(y)


@case(2, everywhere(Born(0, "Tensor.log_.0.forward", ("nan",)), levels=("L1",)))
def in_place(run: Run) -> None:
    """The operation overwrites its own input."""
    x = bad_on(0, run.rank)
    with run.window():
        x.log_()  # born
        x.mul_(2.0)
        torch.sum(x)


def in_backward(operation: str, *modules: str) -> tuple[Born, ...]:
    return (Born(1, operation, ("inf",), phase="backward", modules=modules),)


@case(
    2,
    {
        "L0": in_backward("Module.1.Apply.backward.0"),
        "L1": in_backward("Torch.sqrt.0.backward"),
        "mix": in_backward("Torch.sqrt.0.backward", "Module.1.Apply.backward.0"),
    },
    arrivals=(Arrival(0, r"Distributed.all_reduce.\d.forward", 1),),
)
def backward_sqrt(run: Run) -> None:
    """sqrt(0) is finite, its derivative is not; the gradients are then averaged by hand."""
    model = between(lambda x: torch.sqrt(x))  # born
    x = ramp()
    if run.rank == 1:
        x[0, 1] = 0.0
    with run.window(model):
        model(x).sum().backward()  # ran
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad.div_(run.world)


@case(
    2,
    {
        "L0": in_backward("Module.1.Apply.backward.1"),
        "L1": in_backward("Torch.sqrt.1.backward"),
        "mix": in_backward("Torch.sqrt.1.backward", "Module.1.Apply.backward.1"),
    },
)
def second_batch(run: Run) -> None:
    """Gradients add up over two batches. Their record stands after the first, which is clean."""
    model = between(lambda x: torch.sqrt(x))  # born
    batches = [ramp(), ramp()]
    if run.rank == 1:
        batches[1][0, 1] = 0.0
    with run.window(model):
        for batch in batches:
            model(batch).sum().backward()  # ran


@case(2, everywhere(Born(0, "Torch.sqrt.0.backward", ("nan",), phase="backward"), levels=("L1",)))
def hidden_by_where(run: Run) -> None:
    """Forward hides what has no derivative; backward multiplies it with zero."""
    x = ramp()
    if run.rank == 0:
        x[0, 1] = 0.0
    x.requires_grad_()
    with run.window():
        y = torch.mul(x, 1.0)
        root = torch.sqrt(y)  # born
        torch.where(y > 0.0, root, torch.ones(2, WIDTH)).sum().backward()


STEPPED = r"Tensor.addcdiv_.0.forward"


@case(
    2,
    {
        "L0": (Born(0, "Module.0.Linear.forward.1", ("nan",), kind="parameter", parameter="0.weight"),),
        "L1": (Born(0, STEPPED, ("nan",)),),
        "mix": (Born(0, STEPPED, ("nan",)),),
    },
)
def broken_by_optimizer(run: Run) -> None:
    """No gradient and no epsilon: 0 / 0 in the optimizer, and then a weight that is NaN."""
    model = nn.Sequential(linear())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, eps=0.0, foreach=False)
    x = ramp()
    if run.rank == 0:
        x[:, 1] = 0.0
    with run.window(model):
        model(x).sum().backward()
        optimizer.step()  # born
        model(ramp())  # ran


def with_bad_weight(run: Run, rank: int) -> Any:
    model = nn.Sequential(linear(), nn.ReLU(), linear())
    if run.rank == rank:
        with torch.no_grad():
            model[2].weight[1, 2] = float("nan")
    return model


BAD_WEIGHT = Born(1, "Module.2.Linear.forward.0", ("nan",), kind="parameter", parameter="2.weight")


@case(
    2,
    {
        "L0": (BAD_WEIGHT,),
        "L1": (Born(1, "Functional.linear.1.forward", ("nan",), kind="input|parameter"),),
        "mix": (
            Born(
                1,
                r"Module.2.Linear.forward.0|Functional.linear.1.forward",
                ("nan",),
                kind="parameter",
                parameter="2.weight",
            ),
        ),
    },
)
def bad_parameter(run: Run) -> None:
    """A weight of rank 1 is NaN before the step begins."""
    model = with_bad_weight(run, 1)
    with run.window(model):
        y = model(ramp())  # born, ran
        torch.sum(y)


@case(
    4,
    {
        "L0": (Born(2, "Module.0.Linear.forward.0", ("nan",), kind="input"),),
        "L1": (Born(2, "Functional.linear.0.forward", ("nan",), kind="input"),),
        "mix": (
            Born(
                2,
                "Functional.linear.0.forward",
                ("nan",),
                kind="input",
                modules=("Module.0.Linear.forward.0",),
            ),
        ),
    },
)
def bad_data(run: Run) -> None:
    """The data rank 2 was given has a NaN."""
    model = nn.Sequential(linear(), nn.ReLU(), linear())
    x = ramp()
    if run.rank == 2:
        x[1, 3] = float("nan")
    with run.window(model):
        model(x).sum()  # born, ran


class Inner(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.before = linear()
        self.norm = Apply(lambda x: torch.rsqrt(x))  # born

    def forward(self, x: Any) -> Any:
        return torch.mul(self.norm(self.before(x)), 2.0)


class Outer(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Inner(), Inner()])
        self.head = linear()

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


NESTED = ("Module.layers.1.Inner.forward.0", "Module.layers.1.norm.Apply.forward.0")


@case(
    2,
    {
        "L0": (Born(1, NESTED[1], ("nan",), modules=NESTED[:1]),),
        "L1": (Born(1, "Torch.rsqrt.1.forward", ("nan",)),),
        "mix": (Born(1, "Torch.rsqrt.1.forward", ("nan",), modules=NESTED),),
    },
)
def nested_modules(run: Run) -> None:
    """Three modules deep: the innermost operation is the one that is named."""
    model = Outer()
    if run.rank == 1:
        with torch.no_grad():
            model.layers[1].before.weight.neg_()
    with run.window(model):
        model(ramp()).sum()  # ran


class Recomputed(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first = linear()
        self.block = between(lambda x: torch.log(x))  # born

    def forward(self, x: Any) -> Any:
        return checkpoint(self.block, self.first(x), use_reentrant=False)


BLOCK = ("Module.block.Sequential.forward.0", "Module.block.1.Apply.forward.0")


@case(
    2,
    {
        "L0": (Born(0, BLOCK[1], ("nan",), modules=BLOCK[:1]),),
        "L1": (Born(0, "Torch.log.0.forward", ("nan",)),),
        "mix": (Born(0, "Torch.log.0.forward", ("nan",), modules=BLOCK),),
    },
    arrivals=(Arrival(1, REDUCED, 0),),
)
def recomputed(run: Run) -> None:
    """A checkpointed block: its records come twice, the second time in backward."""
    model = Recomputed()
    x = bad_on(0, run.rank).requires_grad_()
    with run.window(model):
        y = model(x)  # ran
        y.sum().backward()
        y = y.detach()
        dist.all_reduce(y)


@case(
    2,
    {
        "L1": (Born(1, "Torch.exp.0.forward", ("inf",)),),
        "mix": (
            Born(
                1,
                "Torch.exp.0.forward",
                ("inf",),
                modules=("Module.module.Sequential.forward.0", "Module.module.1.Apply.forward.0"),
            ),
        ),
    },
    arrivals=(Arrival(0, "Tensor.add_.0.forward", None),),
)
def data_parallel(run: Run) -> None:
    """DistributedDataParallel reduces gradients from inside autograd: nothing of it is recorded."""
    model = between(lambda x: torch.exp(x))  # born
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, foreach=False)
    x = ramp() * (100.0 if run.rank == 1 else 0.1)
    with run.window(parallel):
        parallel(x).sum().backward()  # ran
        optimizer.step()


@case(
    2,
    everywhere(
        Born(0, "Torch.exp.0.forward", ("inf",)),
        Born(1, "Torch.log.0.forward", ("nan",)),
        levels=("L1",),
    ),
)
def two_births(run: Run) -> None:
    """Both ranks go wrong before they hear of each other."""
    x = ramp()
    with run.window():
        y = torch.mul(x, 100.0 if run.rank == 0 else -1.0)
        y = torch.exp(y) if run.rank == 0 else torch.log(y)  # born
        dist.all_reduce(y)
        torch.sum(y)


@case(
    2,
    everywhere(
        Born(1, "Torch.log.0.forward", ("nan",)),
        Born(0, "Torch.exp.0.forward", ("inf",)),
        levels=("L1",),
    ),
    arrivals=(Arrival(0, REDUCED, 1),),
)
def later_birth(run: Run) -> None:
    """The second rank goes wrong on its own, after it was told of the first."""
    x, other = bad_on(1, run.rank), ramp()
    with run.window():
        y = torch.log(x)  # born
        dist.all_reduce(y)
        torch.sum(y)
        if run.rank == 0:
            torch.exp(torch.mul(other, 100.0))  # born
        else:
            torch.exp(other)


@case(2, everywhere(Born(1, "Tensor.masked_fill.0.forward", ("nan",)), levels=("L1",)))
def filled_with_nan(run: Run) -> None:
    """A NaN given as an argument, and then computed with: no mask."""
    hidden = ramp() > 6.0
    with run.window():
        y = torch.mul(ramp(), 2.0)
        if run.rank == 1:
            y = y.masked_fill(hidden, float("nan"))  # born
        torch.sum(torch.mul(y, 3.0))


@case(2, everywhere(levels=("L0", "L1", "mix")))
def healthy(run: Run) -> None:
    """Nothing is wrong: a step of training with gradients averaged by hand."""
    model = between(lambda x: F.relu(x))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    with run.window(model):
        model(ramp()).mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()


@case(2, everywhere(Born(1, "Torch.log.0.forward", ("nan",)), levels=("L1",)), task="tensor")
def counted_elements(run: Run) -> None:
    """Values are kept: of 2 x 4, one is -Inf and two are NaN, the first of all at [0, 2]."""
    x = ramp()
    if run.rank == 1:
        x[0, 2], x[1, 0], x[1, 3] = -1.0, 0.0, -2.0
    with run.window():
        y = torch.log(x)  # born
        dist.all_reduce(y)
