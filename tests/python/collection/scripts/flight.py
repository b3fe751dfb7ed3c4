"""Two ranks over gloo with a flight recorder, one of which goes bad; they meet in every step.

`python -m … CASE PORT`; each rank says in `held{rank}.json` what is held at the end.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from msprobe.pytorch import PrecisionDebugger

BAD_STEP, STEPS = 5, 9


def train(rank: int, case: str, port: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    debugger = PrecisionDebugger(config_path="./config.json")
    buffers, into, taken = [torch.zeros(4) for _ in range(2)], torch.zeros(8), torch.zeros(4)
    memory = [tensor.numpy() for tensor in (*buffers, into, taken)]
    for step in range(STEPS):
        debugger.start()
        x = torch.full((4,), float(step + rank))
        # Buffers may hold anything before they are filled.
        for array in memory:
            array[:] = float("nan")
        dist.all_gather(buffers, x)
        dist.all_gather_into_tensor(into, x)
        works = [dist.isend(x, 1 - rank), dist.irecv(taken, 1 - rank)]
        for work in works:
            work.wait()
        if case == "late":
            # The other rank has ended its step when this one goes bad.
            if rank == 0:
                debugger.stop()
                debugger.step()
            dist.barrier()
        if step == BAD_STEP and rank == 1 and case != "healthy":
            torch.log(-1.0 - x)
        if case == "healthy" and step == BAD_STEP and rank == 0:
            Path("dump").mkdir()
            Path("dump/flight_recorder.request").touch()
        dist.barrier()
        if case != "late" or rank == 1:
            debugger.stop()
            debugger.step()
        dist.barrier()
    service: Any = debugger.service
    Path(f"held{rank}.json").write_text(json.dumps(service._collector.flight_holding()))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=tuple(sys.argv[1:]), nprocs=2)
