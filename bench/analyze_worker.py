"""The jobs of the benchmark of the NaN analysis, each in a process of its own.

``seed`` trains a block of a transformer on two gloo ranks and collects three steps of it: a healthy one, one
in which a NaN is born on rank 1 and spreads, and one that is handed the NaN. ``reference`` runs the analysis
of the reference. One JSON argument says what to do; the last line of standard output is the answer, in JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

RANKS = 2
STEPS = 3
WIDTH, HEADS, LENGTH, BATCH = 64, 4, 16, 2
TIMEOUT_SECS = 120


def train(rank: int, folder: str) -> None:
    """One rank of the seed."""
    import torch
    import torch.distributed as dist
    from bench.analyze_model import Model

    from msprobe.pytorch import PrecisionDebugger

    torch.set_num_threads(1)
    torch.manual_seed(rank)
    meeting = Path(folder) / "meeting"
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    model = Model(WIDTH, HEADS, rank)
    debugger = PrecisionDebugger(config_path=str(Path(folder) / "config.json"))
    for step in range(STEPS):
        x = torch.randn(BATCH, LENGTH, WIDTH)
        scale = torch.rand(WIDTH) + 0.5
        if step == 1 and rank == 1:
            scale[0] = -1.0
        if step == STEPS - 1:
            x.fill_(float("nan"))
        debugger.start(model=model)
        model.step(x, scale)
        debugger.stop()
        debugger.step()
        model.zero_grad()
    dist.barrier()
    dist.destroy_process_group()


def seed(order: dict[str, Any]) -> dict[str, Any]:
    folder = Path(order["folder"])
    folder.mkdir()
    config = {"task": "statistics", "dump_path": str(folder / "dump"), "level": "mix", "statistics": {}}
    (folder / "config.json").write_text(json.dumps(config))
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=train, args=(rank, str(folder))) for rank in range(RANKS)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(TIMEOUT_SECS)
        if process.is_alive():
            process.kill()
            process.join()
    codes = [process.exitcode for process in ranks]
    if any(codes):
        raise RuntimeError(f"the ranks of the seed ended with {codes}")
    return {"steps": [str(folder / f"dump/step{step}") for step in range(STEPS)]}


def reference(order: dict[str, Any]) -> dict[str, Any]:
    """The call alone, without the import: its command line needs packages beyond its requirements."""
    from msprobe.nan_analyze.analyzer import NanAnalyzer  # type: ignore[import-not-found]

    begin, processor = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        NanAnalyzer(order["step"], order["output"]).analyze()
    return {
        "seconds": time.perf_counter() - begin,
        "processor_seconds": time.process_time() - processor,
    }


JOBS = {"seed": seed, "reference": reference}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(JOBS[given["job"]](given)))
