"""Values that are not finite on their way from rank to rank, by every kind of communication."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from .parts import bad_on, between, ramp
from .registry import Arrival, Born, Run, case, everywhere


def log_on(rank: int, number: int = 0, levels: tuple[str, ...] = ("L1",)) -> dict[str, tuple[Born, ...]]:
    return everywhere(Born(rank, f"Torch.log.{number}.forward", ("nan",)), levels=levels)


@case(2, log_on(0, levels=("L1", "mix")), arrivals=(Arrival(1, "Distributed.broadcast.0.forward", 0),))
def by_broadcast(run: Run) -> None:
    model = between(lambda x: torch.log(x))  # born
    x = bad_on(0, run.rank)
    with run.window(model):
        y = model(x)  # ran
        dist.broadcast(y, src=0)
        torch.neg(y)


@case(
    4,
    log_on(1, levels=("L1", "mix")),
    arrivals=(
        Arrival(2, "Distributed.recv.0.forward", 1),
        Arrival(3, "Distributed.recv.0.forward", 2),
    ),
)
def by_pipeline(run: Run) -> None:
    """Each rank is a stage: it receives, computes and sends on."""
    bad = run.rank == 1
    model = between(lambda x: torch.log(torch.neg(x) if bad else torch.add(x, 1.0)))  # born
    x = ramp()
    with run.window(model):
        if run.rank > 0:
            dist.recv(x, run.rank - 1)
        y = model(x).detach()  # ran
        if run.rank < run.world - 1:
            dist.send(y, run.rank + 1)


@case(
    4,
    log_on(2, levels=("L1", "mix")),
    arrivals=(
        Arrival(3, "Distributed.irecv.0.forward", 2),
        Arrival(0, "Distributed.irecv.1.forward", 3),
    ),
)
def by_ring(run: Run) -> None:
    """Two rounds of a ring. Receives are posted before anything is computed: they come first in the dump."""
    model = between(lambda x: torch.log(x))  # born
    following, previous = (run.rank + 1) % run.world, (run.rank - 1) % run.world
    x = bad_on(2, run.rank)
    with run.window(model):
        taken = torch.zeros_like(x)
        pending = dist.irecv(taken, previous)
        y = model(x).detach()  # ran
        sent = dist.isend(y, following)
        pending.wait()
        sent.wait()
        relayed = torch.mul(taken, 2.0)
        taken = torch.zeros_like(x)
        pending = dist.irecv(taken, previous)
        sent = dist.isend(relayed, following)
        pending.wait()
        sent.wait()
        torch.sum(taken)


@case(2, log_on(1, 1), arrivals=(Arrival(0, "Distributed.irecv.1.forward", 1),))
def by_exchange(run: Run) -> None:
    """Both ranks have a receive in flight while they compute, and the second exchange is the bad one."""
    other = 1 - run.rank
    with run.window():
        y = ramp()
        for turn in range(2):
            taken = torch.zeros(2, 4)
            pending = dist.irecv(taken, other)
            bad = run.rank == 1 and turn == 1
            y = torch.log(torch.neg(y) if bad else torch.add(torch.abs(y), 1.0))  # born
            sent = dist.isend(y, other)
            pending.wait()
            sent.wait()
            y = torch.add(y, taken)


@case(2, log_on(1), arrivals=(Arrival(0, "Distributed.recv.0.forward", 1),))
def round_trip(run: Run) -> None:
    """What rank 1 gets back in the end is posted first: in its dump the echo stands before the birth."""
    x = bad_on(1, run.rank)
    with run.window():
        if run.rank == 1:
            echo = torch.zeros(2, 4)
            pending = dist.irecv(echo, 0)
            dist.send(torch.log(x), 0)  # born
            pending.wait()
            torch.sum(echo)
        else:
            dist.recv(x, 1)
            dist.send(torch.mul(x, 2.0), 1)


@case(
    4,
    log_on(0),
    arrivals=(
        Arrival(2, "Distributed.all_reduce.0.forward", 0),
        Arrival(1, "Distributed.all_gather_into_tensor.0.forward", 0),
        Arrival(3, "Distributed.all_gather_into_tensor.0.forward", 0),
    ),
)
def by_overlapping_groups(run: Run) -> None:
    """Even and odd ranks add up without waiting, each for themselves; then all of them gather."""
    column = group_of(run.rank, [0, 2], [1, 3])
    x = bad_on(0, run.rank)
    with run.window():
        y = torch.log(x)  # born
        work = dist.all_reduce(y, group=column, async_op=True)
        torch.exp(ramp())
        work.wait()
        whole = torch.zeros(8, 4)
        dist.all_gather_into_tensor(whole, y)
        torch.sum(whole)


@case(4, log_on(3), arrivals=(Arrival(0, "Distributed.batch_isend_irecv.0.forward", 3),))
def by_batch(run: Run) -> None:
    """A ring in one call per rank."""
    x = bad_on(3, run.rank)
    with run.window():
        y, taken = torch.log(x), torch.zeros(2, 4)  # born
        operations = [
            dist.P2POp(dist.isend, y, (run.rank + 1) % run.world),
            dist.P2POp(dist.irecv, taken, (run.rank - 1) % run.world),
        ]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        torch.sum(taken)


def group_of(rank: int, *members: list[int]) -> Any:
    """The group this rank is in; all ranks make all groups."""
    groups = [(ranks, dist.new_group(ranks)) for ranks in members]
    return next(group for ranks, group in groups if rank in ranks)


@case(
    4,
    log_on(3, levels=("L1", "mix")),
    arrivals=(
        Arrival(2, "Distributed.all_reduce.0.forward", 3),
        Arrival(0, "Distributed.all_reduce.1.forward", 2),
        Arrival(1, "Distributed.all_reduce.1.forward", 3),
    ),
)
def by_groups(run: Run) -> None:
    """A grid: rows [0, 1] and [2, 3] add up first, then columns [0, 2] and [1, 3]."""
    row = group_of(run.rank, [0, 1], [2, 3])
    column = group_of(run.rank, [0, 2], [1, 3])
    model = between(lambda x: torch.log(x))  # born
    x = bad_on(3, run.rank)
    with run.window(model):
        y = model(x).detach()  # ran
        dist.all_reduce(y, group=row)
        y = torch.mul(y, 0.5)
        dist.all_reduce(y, group=column)
        torch.sum(y)


@case(
    4,
    log_on(2),
    arrivals=(
        Arrival(3, "Distributed.all_reduce.0.forward", 2),
        Arrival(0, "Distributed.all_gather.0.forward", 2),
        Arrival(1, "Distributed.all_gather.0.forward", 2),
    ),
)
def by_group_then_all(run: Run) -> None:
    """One group has nothing to hide; a collective of all ranks tells them."""
    row = group_of(run.rank, [0, 1], [2, 3])
    x = bad_on(2, run.rank)
    with run.window():
        y = torch.log(x)  # born
        dist.all_reduce(y, op=dist.ReduceOp.SUM, group=row)
        parts = [torch.zeros(2, 4) for _ in range(run.world)]
        dist.all_gather(parts, y)
        torch.stack(parts)


@case(
    4,
    log_on(3),
    arrivals=(
        Arrival(0, "Distributed.all_reduce.1.forward", 3),
        Arrival(1, "Distributed.all_reduce.1.forward", 3),
        Arrival(2, "Distributed.all_reduce.0.forward", 3),
    ),
)
def uneven_numbers(run: Run) -> None:
    """Two ranks have added something up between them before: the common sum has another number there."""
    pair = group_of(run.rank, [0, 1], [2, 3])
    x = bad_on(3, run.rank)
    with run.window():
        if run.rank < 2:
            dist.all_reduce(torch.mul(x, 2.0), group=pair)
        y = torch.log(x)  # born
        dist.all_reduce(y)
        torch.sum(y)


@case(2, log_on(0), arrivals=(Arrival(1, "Distributed.recv.1.forward", 0),))
def mixed_transfers(run: Run) -> None:
    """What one side sends without waiting the other waits for, and the second of two messages is bad."""
    x = bad_on(0, run.rank)
    with run.window():
        if run.rank == 0:
            first = dist.isend(torch.mul(x, 2.0), dst=1)
            second = dist.isend(torch.log(x), dst=1)  # born
            first.wait()
            second.wait()
        else:
            for _ in range(2):
                dist.recv(x, src=0)
            torch.sum(x)


@case(2, log_on(0), arrivals=(Arrival(1, "Distributed.irecv.0.forward", 0),))
def by_tags(run: Run) -> None:
    """Two messages are received in the other order: their tags say which is which."""
    x = bad_on(0, run.rank)
    with run.window():
        if run.rank == 0:
            clean = dist.isend(torch.mul(x, 2.0), dst=1, tag=1)
            bad = dist.isend(torch.log(x), dst=1, tag=2)  # born
            works = [clean, bad]
        else:
            taken = [torch.zeros(2, 4), torch.zeros(2, 4)]
            works = [dist.irecv(taken[0], src=0, tag=2), dist.irecv(taken[1], src=0, tag=1)]
        for work in works:
            work.wait()


@case(2, log_on(1), arrivals=(Arrival(0, "Distributed.all_gather.0.forward", 1),))
def by_all_gather(run: Run) -> None:
    x = bad_on(1, run.rank)
    with run.window():
        y = torch.log(x)  # born
        parts = [torch.zeros(2, 4) for _ in range(run.world)]
        dist.all_gather(parts, y)
        torch.cat(parts)


@case(2, log_on(0), arrivals=(Arrival(1, "Distributed.reduce_scatter.0.forward", 0),))
def by_reduce_scatter(run: Run) -> None:
    """Only the part that goes to rank 1 is bad: rank 0, where it was born, gets a clean result."""
    x = bad_on(0, run.rank)
    with run.window():
        y, out = torch.log(x), torch.zeros(2, 4)  # born
        dist.reduce_scatter(out, [ramp(), y])
        torch.sum(out)


@case(2, log_on(0), arrivals=(Arrival(1, "Distributed.all_to_all_single.0.forward", 0),))
def by_all_to_all(run: Run) -> None:
    """The half of rank 0 that goes to rank 1 is bad."""
    x = bad_on(0, run.rank)
    with run.window():
        out = torch.zeros(4, 4)
        whole = torch.cat([ramp(), torch.log(x)])  # born
        dist.all_to_all_single(out, whole)
        torch.sum(out)


@case(2, log_on(1), arrivals=(Arrival(0, "Distributed.gather.0.forward", 1),))
def by_gather(run: Run) -> None:
    x = bad_on(1, run.rank)
    with run.window():
        y = torch.log(x)  # born
        parts = [torch.zeros(2, 4) for _ in range(run.world)] if run.rank == 0 else None
        dist.gather(y, parts, dst=0)
        if parts:
            torch.cat(parts)


@case(2, log_on(0), arrivals=(Arrival(1, "Distributed.scatter.0.forward", 0),))
def by_scatter(run: Run) -> None:
    """The part for rank 1 is bad; what rank 0 keeps is not."""
    x = bad_on(0, run.rank)
    with run.window():
        y, out = torch.log(x), torch.zeros(2, 4)  # born
        dist.scatter(out, [ramp(), y] if run.rank == 0 else None, src=0)
        torch.sum(out)


@case(4, log_on(1), arrivals=(Arrival(3, "Distributed.reduce.0.forward", 1),))
def by_reduce(run: Run) -> None:
    """Rank 3 asks for the sum. Gloo leaves parts of it on other ranks, too, which is nobody's fault."""
    x = bad_on(1, run.rank)
    with run.window():
        y = torch.log(x)  # born
        dist.reduce(y, dst=3)
        torch.sum(y)


@case(2, log_on(1), arrivals=(Arrival(0, "Distributed.all_reduce.0.forward", 1),))
def by_async_all_reduce(run: Run) -> None:
    """The sum is on its way while clean work goes on, and is waited for later."""
    x = bad_on(1, run.rank)
    with run.window():
        y = torch.log(x)  # born
        work = dist.all_reduce(y, async_op=True)
        torch.exp(ramp())
        work.wait()
        torch.sum(y)


@case(
    2,
    everywhere(
        Born(0, "Distributed.all_reduce.0.forward", ("inf",), kind="communication"),
        levels=("L1", "mix"),
    ),
)
def sum_overflows(run: Run) -> None:
    """60000 + 60000 in float16: what each rank gives is finite, what all of them get is not."""
    model = between(lambda x: torch.abs(x))
    x = torch.full((4,), 60000.0, dtype=torch.float16)
    with run.window(model):
        model(ramp())
        dist.all_reduce(x)  # born
        torch.neg(x)


@case(2, log_on(0), arrivals=(Arrival(1, "Distributed.broadcast.1.forward", 0),))
def second_broadcast(run: Run) -> None:
    """Keyword arguments, and a first broadcast that is clean."""
    x = bad_on(0, run.rank)
    with run.window():
        first = torch.mul(ramp(), 2.0)
        dist.broadcast(tensor=first, src=1)
        y = torch.log(x)  # born
        dist.broadcast(tensor=y, src=0)
        torch.sum(y)
