"""Level L2, the kernels of one API on an NPU: the configuration that the device's dumper reads.

Without a complete NPU environment there is nothing to dump; a run at this level then says so and goes on.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from msprobe import _native
from msprobe.core.collect_config import DebuggerConfig
from msprobe.core.common.file_check import FILE_MODE, make_directory
from msprobe.pytorch.device import npu_is_available
from msprobe.pytorch.log import current_rank, log_end, logger


def write_kernel_config(step_directory: str, rank: int | None) -> Path:
    """Writes what the device's dumper is to do in a step, and returns the path of the file."""
    make_directory(step_directory)
    name = "kernel_config.json" if rank is None else f"kernel_config_{rank}.json"
    path = Path(step_directory, name)
    content = {
        "dump": {"dump_list": [], "dump_path": step_directory, "dump_mode": "all", "dump_op_switch": "on"}
    }
    # Beside the final name and renamed, so that a file under that name is always whole.
    part = path.with_name(f"{name}.{os.getpid()}.part")
    part.write_text(json.dumps(content, indent=4), encoding="utf-8")
    part.chmod(FILE_MODE)
    part.replace(path)
    return path


class KernelService:
    """What the debugger drives at level L2, in place of the service that collects in Python."""

    def __init__(self, config: _native.Config) -> None:
        self.config = DebuggerConfig(config)
        self.first_start = True
        self._rank: int | None = None
        self._init_step = 0
        self._loop = 0
        self._open = False
        self._ended = False

    def start(self, models: list[tuple[str, Any]] | None, token_range: tuple[int, int] | None) -> None:
        step = self._init_step + self._loop
        if self._ended:
            return
        if self.config.ends_before(step):
            self._ended = True
            log_end()
            return
        if not self.config.wants_step(step) or not self._collects_here():
            return
        self._open = True
        logger.info("msprobe: debugger.start() is set successfully")
        logger.info(f"Dump switch is turned on at step {step}. ")
        step_directory = f"{self.config.dump_path.rstrip('/')}/step{step}"
        write_kernel_config(step_directory, self._rank)
        logger.info(f"Dump data will be saved in {step_directory}.")

    def stop(self) -> None:
        if self._open:
            self._open = False
            logger.info(
                "msprobe: debugger.stop() is set successfully. "
                "Please set debugger.start() to turn on the dump switch again. "
            )

    def step(self) -> None:
        if not self._ended:
            self._open = False
            self._loop += 1

    def set_init_step(self, step: int) -> None:
        self._init_step, self._loop = step, 0

    def _collects_here(self) -> bool:
        if self.first_start:
            self._rank = current_rank()
            if not self.config.wants_rank(self._rank):
                return False
            self.first_start = False
            _warn()
        return True

    # No value passes through Python at this level: there is nothing to wrap, to save or to count.

    def save(self, variable: Any, name: str, save_backward: bool) -> None: ...

    def register_custom_api(self, module: Any, api: str, api_prefix: str) -> None: ...

    def restore_custom_api(self, module: Any, api: str) -> None: ...

    def module_dump(self, module: Any, dump_name: str) -> None: ...

    def module_dump_end(self) -> None: ...

    def reset_status(self) -> None: ...


def _warn() -> None:
    if npu_is_available():
        logger.warning("This version collects no kernels of an NPU: level L2 writes kernel_config.json only.")
    else:
        logger.warning(
            "The current environment is not a complete NPU environment, and kernel dump cannot be used."
        )
