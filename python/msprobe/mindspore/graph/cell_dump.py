"""Level L0 of static graphs, kernel by kernel: operators in the graph write what goes into cells and comes
out of them.

The operators (``TensorDump``, ``DumpGradient``) run in graphs on Ascend only, where this was not run; in
PyNative mode they run on CPU, and that is how it is tested. What they leave is made into a dump by
``cell_dump_files``.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
from mindspore import ops

from msprobe.core.collection.arguments import invalid
from msprobe.mindspore.config import Settings
from msprobe.mindspore.graph.cell_dump_files import finish_statistics, finish_tensors
from msprobe.mindspore.graph.files import write_json
from msprobe.mindspore.log import logger

_MODES = (["all"], ["forward"], ["backward"])
_CATEGORIES = {"max": "max", "min": "min", "mean": "avg", "l2norm": "l2norm"}


def check(settings: Settings) -> None:
    """Refuses what this level cannot do."""
    config = settings.native
    for key, value in (("rank", config.rank), ("scope", config.scope), ("list", config.list)):
        if value:
            raise Exception(f"In graph mode, cell dump does not currently support specifying {key}.")
    if config.data_mode not in _MODES:
        raise Exception("In graph mode, data_mode must be one of all, forward, backward.")
    if settings.task == "statistics" and "md5" in (settings.summary_mode or ()):
        raise Exception("In graph mode, cell dump does not currently support md5.")
    if not hasattr(ops, "DumpGradient"):
        raise Exception("Cell dump of static graphs needs MindSpore 2.7 or newer.")


def cells_of(model: Any) -> Iterator[tuple[str, Any]]:
    """The cells that are dumped, with their paths."""
    for path, cell in model.cells_and_names():
        if path not in ("", "grad_reducer") and not type(cell).__name__.startswith("_"):
            yield path, cell


def instrument(cell: Any, prefix: str, separator: str, mode: str) -> None:
    """Has the values of a cell written under ``prefix``, in the directions of ``mode``."""
    forward, backward = mode in ("all", "forward"), mode in ("all", "backward")
    dump, gradient = ops.TensorDump(), ops.DumpGradient()
    construct = cell.construct
    names = [
        f"{prefix}{separator}{way}{separator}{side}{separator}"
        for way, side in (
            ("forward", "input"),
            ("forward", "output"),
            ("backward", "output"),
            ("backward", "input"),
        )
    ]
    given, made, given_gradient, made_gradient = names

    def watched(value: Any, name: str, gradient_name: str, index: int, way: str) -> Any:
        if isinstance(value, ms.Tensor):
            if backward:
                value = gradient(gradient_name + str(index), value, way)
            if forward:
                dump(name + str(index), value)
        return value

    def instrumented(*args: Any, **kwargs: Any) -> Any:
        values = []
        for index, value in enumerate(args):
            values.append(watched(value, given, given_gradient, index, "out"))
        result = construct(*values, **kwargs)
        if isinstance(result, tuple):
            results = []
            for index, value in enumerate(result):
                results.append(watched(value, made, made_gradient, index, "in"))
            return tuple(results)
        return watched(result, made, made_gradient, 0, "in")

    cell.construct = instrumented


class CellDumpService:
    """What the debugger drives at level L0 of static graphs."""

    def __init__(self, settings: Settings) -> None:
        check(settings)
        self.config = settings
        self._rank = os.environ.get("RANK_ID")
        self._is_instrumented = False

    def start(self, models: list[tuple[str, Any]] | None, token_range: Any) -> None:
        if self._is_instrumented:
            return
        if not models:
            raise invalid("The model is empty and cell dump is not enabled.")
        self._is_instrumented = True
        os.environ["MS_JIT_MODULES"] = "msprobe"
        is_tensor = self.config.task == "tensor"
        separator = "." if is_tensor else "-"
        root = f"{self.config.native.dump_path}/{{step}}/{{rank}}/dump_tensor_data/"
        if not is_tensor:
            self._configure_statistics()
        for prefix, model in models:
            for path, cell in cells_of(model):
                name = f"{prefix}{path}.{type(cell).__name__}"
                instrument(
                    cell, root + name.replace(".", separator), separator, self.config.native.data_mode[0]
                )
        self._choose_steps()
        atexit.register(self.finish)
        logger.info(
            "The cells of the static graph are instrumented; their dump is made when the process ends."
        )

    def stop(self) -> None: ...

    def step(self) -> None:
        advance = getattr(ms._c_expression, "_dump_step", None)
        if advance is not None and self.config.task == "tensor":
            advance(1)

    def finish(self) -> None:
        """Makes the dump of what MindSpore has written."""
        finish = finish_tensors if self.config.task == "tensor" else finish_statistics
        finish(Path(self.config.native.dump_path), self._rank or "0", self._rank is not None)

    def _choose_steps(self) -> None:
        """Has the operators write in the steps that are collected only."""
        choose = getattr(ms._c_expression, "_tensordump_set_step", None)
        if choose is not None and self.config.task == "tensor" and self.config.native.step:
            choose(self.config.native.step)

    def _configure_statistics(self) -> None:
        """Operators are skipped at launch; MindSpore's kernel dump measures what they would have written."""
        os.environ["MS_KERNEL_LAUNCH_SKIP"] = "TensorDump"
        mode = self.config.summary_mode
        items = mode if isinstance(mode, list) else list(_CATEGORIES)
        config = self.config.native
        path = Path(config.dump_path, f"{self._rank or 0}kernel_kbyk_dump.json")
        content = {
            "common_dump_settings": {
                "op_debug_mode": 0,
                "dump_mode": 1,
                "path": config.dump_path,
                "net_name": "Net",
                "iteration": "|".join(map(str, config.step)) or "all",
                "saved_data": "statistic",
                "input_output": 0,
                "kernels": ["TensorDump"],
                "support_device": list(range(8)),
                "statistic_category": [_CATEGORIES[item] for item in items],
            },
            "e2e_dump_settings": {"enable": False, "trans_flag": True, "stat_calc_mode": "device"},
        }
        write_json(path, content, 4)
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(path)
        read = getattr(ms._c_expression, "_dump_init", None)
        if read is not None:
            read()
            path.unlink()
