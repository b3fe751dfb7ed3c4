"""Level L2 of static graphs: the configuration of MindSpore's own dumper, and its switches.

The files are written at the first start, before the network is built. What the dumper does with them on an
NPU was not run here; on CPU it dumps tensors, and refuses statistics.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msprobe.mindspore.config import Settings
from msprobe.mindspore.debugger.execution import GRAPH_GE
from msprobe.mindspore.graph.files import write_json
from msprobe.mindspore.log import current_rank, logger

_DEVICES = list(range(8))
_SIDES = {"all": 0, "input": 1, "output": 2}
_CHECKS = {"all": 3, "aicore": 1, "atomic": 2}


def common_settings(settings: Settings) -> dict[str, Any]:
    """What both files say."""
    config = settings.native
    modes = config.data_mode
    if len(modes) != 1 or modes[0] not in _SIDES:
        raise Exception("data_mode must be one of all, input, output.")
    return {
        "dump_mode": 1 if config.list else 0,
        "path": config.dump_path,
        "net_name": "Net",
        "iteration": "|".join(map(str, config.step)) or "all",
        "saved_data": "tensor" if settings.task == "tensor" else "statistic",
        "input_output": _SIDES[modes[0]],
        "kernels": config.list,
        "support_device": config.rank or _DEVICES,
    }


def kernel_by_kernel(settings: Settings) -> dict[str, Any]:
    """For O0 and O1."""
    whole: dict[str, Any] = {"enable": not settings.native.async_dump, "trans_flag": True}
    if settings.task == "statistics":
        whole["stat_calc_mode"] = settings.device
        whole["device_stat_precision_mode"] = settings.precision
    return {"common_dump_settings": common_settings(settings), "e2e_dump_settings": whole}


def whole_graph(settings: Settings) -> dict[str, Any]:
    """For O2."""
    file_format = settings.file_format if settings.task == "tensor" else "npy"
    common = common_settings(settings)
    return {"common_dump_settings": {**common, "op_debug_mode": 0, "file_format": file_format}}


def overflow_check(settings: Settings) -> dict[str, Any]:
    """For O2: which operators overflow."""
    return {
        "common_dump_settings": {
            "dump_mode": 0,
            "path": settings.native.dump_path,
            "net_name": "Net",
            "iteration": "all",
            "saved_data": "full",
            "input_output": 0,
            "kernels": [],
            "support_device": settings.native.rank or _DEVICES,
            "op_debug_mode": _CHECKS[settings.check_mode],
            "file_format": "npy",
        }
    }


def write_files(settings: Settings, mode: str) -> Path:
    """Writes the configuration and has MindSpore read it. Gives the file it will read."""
    if settings.task == "structure":
        raise Exception("Valid task is needed.")
    if settings.task == "overflow_check":
        if mode != GRAPH_GE:
            raise ValueError(f"a static graph ({mode}) has no task overflow_check: take jit_level O2")
        if settings.native.step:
            logger.warning("The overflow check of a static graph looks at all steps: step is ignored.")
        contents = {"kernel_graph_overflow_check.json": overflow_check(settings)}
    else:
        if os.environ.get("GRAPH_OP_RUN") == "1":
            raise Exception("Must run in graph mode, not kbk mode")
        # MindSpore reads the last one; which of them it wants depends on how it is going to run.
        contents = {
            "kernel_graph_dump.json": whole_graph(settings),
            "kernel_kbyk_dump.json": kernel_by_kernel(settings),
        }
    path = Path(settings.native.dump_path)
    for name, content in contents.items():
        path = Path(settings.native.dump_path, name)
        write_json(path, content, 4)
        logger.info(f"{path} has been created.")
    os.environ["MINDSPORE_DUMP_CONFIG"] = str(path)
    os.environ.pop("MS_ACL_DUMP_CFG_PATH", None)
    return path


class _Switches:
    """MindSpore's own start and stop of dumping, where this version has them."""

    def __init__(self) -> None:
        try:
            from mindspore import _c_expression as native
        except ImportError:
            native = None

        def find(name: str) -> Any:
            return getattr(native, name, None)

        self._start, self._stop = find("_dump_start"), find("_dump_stop")
        self._step, self._set_dynamic = find("_dump_step"), find("_dump_set_dynamic")
        self._set_iteration = find("_set_init_iter")
        self.is_dynamic = all((self._start, self._stop, self._step, self._set_dynamic))

    def enable(self) -> None:
        if self.is_dynamic:
            self._set_dynamic()

    def first(self) -> None:
        if self.is_dynamic and self._set_iteration is not None:
            self._set_iteration(0)

    def start(self) -> None:
        if self.is_dynamic:
            self._start()

    def stop(self) -> None:
        if self.is_dynamic:
            self._stop()

    def step(self) -> None:
        if self.is_dynamic:
            self._step(1)


class GraphKernelService:
    """What the debugger drives at level L2 of static graphs."""

    def __init__(self, settings: Settings, mode: str) -> None:
        self.config = settings
        self._loop = 0
        self._is_on = False
        self._has_started = False
        write_files(settings, mode)
        self._switches = _Switches()
        self._switches.enable()

    def start(self, models: Any, token_range: Any) -> None:
        config = self.config.native
        if not self._has_started:
            self._has_started = True
            self._switches.first()
        if not config.wants_step(self._loop) or not config.wants_rank(current_rank()):
            return
        self._is_on = True
        self._switches.start()

    def stop(self) -> None:
        if self._is_on:
            self._is_on = False
            self._switches.stop()

    def step(self) -> None:
        self._loop += 1
        self._switches.step()
