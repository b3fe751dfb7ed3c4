"""Collects the corpus: `python -m tests.python.analyze.worker FOLDER [CASE …]`.

Ranks are forked from one process that has imported torch already. A set of ranks serves all cases of one
world size, level and task; each case has a directory of its own: `FOLDER/{level}/{case}/step0/rank{n}`.
"""

from __future__ import annotations

import contextlib
import datetime
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from msprobe.pytorch import PrecisionDebugger

from .corpus import CASES, Case, configuration, write_configuration

TIMEOUT_SECS = 600
# World size, level and task: one debugger lives for a set of them.
Setting = tuple[int, str, str]


class Rank:
    """One rank in one case."""

    def __init__(self, rank: int, world: int, folder: Path, debugger: PrecisionDebugger) -> None:
        self.rank, self.world = rank, world
        self._folder, self._debugger = folder, debugger

    @contextlib.contextmanager
    def window(self, model: Any = None) -> Iterator[None]:
        self._debugger.config.dump_path = str(self._folder)
        self._debugger.set_init_step(0)
        self._debugger.start(model=model)
        yield
        self._debugger.stop()
        self._debugger.step()


def work(rank: int, setting: Setting, cases: list[Case], folder: Path, meeting: str) -> None:
    world, level, task = setting
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=world,
        timeout=datetime.timedelta(seconds=TIMEOUT_SECS / 2),
    )
    debugger = PrecisionDebugger(config_path=str(configuration(folder, level, task)))
    for case in cases:
        # A case may leave nothing to the next one but counters, which a step resets.
        torch.manual_seed(0)
        dist.barrier()
        case.run(Rank(rank, world, folder / level / case.name, debugger))
    dist.barrier()
    dist.destroy_process_group()


def settings(names: list[str]) -> dict[Setting, list[Case]]:
    found: dict[Setting, list[Case]] = {}
    for case in CASES.values():
        if not names or case.name in names:
            for level in case.levels:
                found.setdefault((case.world, level, case.task), []).append(case)
    return found


def main(folder: Path, names: list[str]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for _, level, task in settings(names):
        write_configuration(folder, level, task)
    context = multiprocessing.get_context("fork")
    failed = 0
    with tempfile.TemporaryDirectory() as meetings:
        for number, (setting, cases) in enumerate(settings(names).items()):
            meeting = str(Path(meetings) / str(number))
            arguments = [(rank, setting, cases, folder, meeting) for rank in range(setting[0])]
            ranks = [context.Process(target=work, args=given) for given in arguments]
            for process in ranks:
                process.start()
            for process in ranks:
                process.join(TIMEOUT_SECS)
                if process.is_alive():
                    process.kill()
                    process.join()
            codes = [process.exitcode for process in ranks]
            if any(codes):
                print(f"{setting}: exit codes {codes}", file=sys.stderr, flush=True)
                failed += 1
    return failed


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(1 if main(Path(sys.argv[1]).resolve(), sys.argv[2:]) else 0)
