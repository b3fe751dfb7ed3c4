"""Callbacks of ``mindspore.train.Model``, which drive the debugger step by step."""

from __future__ import annotations

from typing import Any

from mindspore.train import Callback

from msprobe.core.common.log import logger


def _set_iteration(number: int) -> bool:
    """Has MindSpore's own dumper count from ``number``. False if this version cannot."""
    try:
        from mindspore._c_expression import _set_init_iter
    except ImportError:
        return False
    _set_init_iter(number)
    return True


class MsprobeStep(Callback):  # type: ignore[misc]
    """Collects every step of a ``Model.train``: starts before it, stops and counts after it."""

    def __init__(self, debugger: Any) -> None:
        super().__init__()
        self.debugger = debugger

    def on_train_begin(self, run_context: Any) -> None:
        self.debugger.start()
        _set_iteration(0)

    def on_train_step_begin(self, run_context: Any) -> None:
        self.debugger.start()

    def on_train_step_end(self, run_context: Any) -> None:
        self.debugger.stop()
        self.debugger.step()


class MsprobeInitStep(Callback):  # type: ignore[misc]
    """Has static graphs of a resumed training dumped under the number of the step they resume at."""

    def on_train_begin(self, run_context: Any) -> None:
        parameters = run_context.original_args()
        step = getattr(parameters, "cur_step_num", 0)
        if not _set_iteration(int(step)):
            logger.warning("MsprobeInitStep does not work on this version of MindSpore.")
