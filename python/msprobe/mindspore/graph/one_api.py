"""Level L2 in PyNative mode, the kernels of one API on an NPU: the configuration the device's dumper reads.

This version has no native part that switches the device's dumper, so the file is all that is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msprobe.core.collection.arguments import invalid
from msprobe.core.common.file_check import make_directory
from msprobe.mindspore.config import Settings
from msprobe.mindspore.graph.files import write_json
from msprobe.mindspore.log import current_rank, logger


def check(settings: Settings) -> None:
    """Refuses what this level cannot do."""
    config = settings.native
    text = None
    if settings.task != "tensor":
        text = "When level is set to L2, the task must be set to tensor."
    elif config.scope:
        text = "When level is set to L2, the scope cannot be configured."
    elif len(config.list) != 1:
        text = "When level is set to L2, the list must be configured as a list with one api name."
    if text is not None:
        logger.error(text)
        raise invalid(text)


class OneApiService:
    """What the debugger drives at level L2 in PyNative mode."""

    def __init__(self, settings: Settings) -> None:
        check(settings)
        self.config = settings
        self._loop = 0
        self._has_warned = False

    def start(self, models: Any, token_range: Any) -> None:
        config, rank = self.config.native, current_rank()
        if not config.wants_step(self._loop) or not config.wants_rank(rank):
            return
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "The current msprobe package does not compile adump, and kernel dump cannot be used."
            )
        directory = f"{config.dump_path}/step{self._loop}"
        make_directory(directory)
        name = "kernel_config.json" if rank is None else f"kernel_config_{rank}.json"
        dump = {"dump_list": [], "dump_path": directory, "dump_mode": "all", "dump_op_switch": "on"}
        write_json(Path(directory, name), {"dump": dump}, 4)

    def stop(self) -> None: ...

    def step(self) -> None:
        self._loop += 1
