"""A collection from MindSpore in PyNative mode: its hooks, around what is the same with every framework."""

from __future__ import annotations

from typing import Any

from msprobe import _native
from msprobe.core.collection.replacing import Replacements
from msprobe.core.collection.service import CollectionService
from msprobe.core.collection.tokens import TokenCounter
from msprobe.core.common.log import logger as core_logger
from msprobe.core.framework import Framework
from msprobe.mindspore.framework import MINDSPORE
from msprobe.mindspore.hooks.adapter import Adapter
from msprobe.mindspore.hooks.apis import ApiHooks
from msprobe.mindspore.hooks.cells import CellHooks, compiled_below
from msprobe.mindspore.hooks.executor import wake
from msprobe.mindspore.hooks.gradients import Gradients
from msprobe.mindspore.hooks.jit import JitHooks
from msprobe.mindspore.hooks.primitives import PrimitiveHooks
from msprobe.mindspore.log import current_rank, logger


class Service(CollectionService):
    """What ``PrecisionDebugger`` drives; arguments have been checked."""

    def __init__(self, config: _native.Config, framework: Framework = MINDSPORE) -> None:
        super().__init__(config, logger)
        self._tokens = TokenCounter(self.window, lambda model: model, _before_each_call)
        adapter = Adapter(self.window, self._error_log, framework)
        self._connect(adapter, config)
        adapter.on_notice = self._flush_when_over
        self._replacements = Replacements()
        self._gradients = Gradients(self._collector, self.window, adapter.failed)
        self._make_hooks()
        self._has_models = False
        self.window.on_change.append(self._switch_hooks)
        if config.level in ("L1", "mix"):
            self._apis.install()
            if config.task in ("statistics", "tensor"):
                self._jit.install()
            core_logger.info(f"The api {config.task} hook function is successfully mounted to the model.")

    def _make_hooks(self) -> None:
        self._apis = ApiHooks(self._collector, self.window, self._replacements, self._gradients)
        self._cells = CellHooks(self._collector, self.window, self._gradients)
        self._primitives = PrimitiveHooks(self._collector, self.window, self._gradients)
        self._jit = JitHooks(self._collector, self.window, self._replacements)

    def _switch_hooks(self) -> None:
        """A window has opened or closed: outside of windows everything is as without us."""
        self._gradients.settle()
        if self.window.apis:
            self._replacements.open()
        else:
            self._replacements.close()

    def _current_rank(self) -> int | None:
        return current_rank()

    def _install(self, models: list[tuple[str, Any]] | None, is_first: bool) -> None:
        level, task = self.config.level, self.config.task
        if is_first:
            wake()
        if level in ("L1", "mix"):
            # A package may have been imported since the debugger was made.
            self._apis.install()
        if models is None or self._has_models:
            return
        self._has_models = True
        if level in ("L1", "mix") and task != "overflow_check":
            self._install_primitives([model for _, model in models])
        if level in ("L0", "mix"):
            self._cells.install(models)
            self._tell_compiled(models)
            core_logger.info("The cell hook function is successfully mounted to the model.")
            core_logger.info(f"The module {task} hook function is successfully mounted to the model.")

    def _tell_compiled(self, models: list[tuple[str, Any]]) -> None:
        for _, model in models:
            paths = compiled_below(model)
            if paths:
                remedy = "take level L1 or mix" if self.config.level == "L0" else "look for records named Jit"
                logger.warning(
                    f"Cells compiled by mindspore.jit are not recorded as cells, nor is what is inside: "
                    f"{', '.join(paths[:5])}{', …' if len(paths) > 5 else ''} ({len(paths)} in all). To see "
                    f"what goes into them and comes out, {remedy}."
                )

    def _install_primitives(self, models: list[Any]) -> None:
        self._primitives.install(models)

    def _before_end(self) -> None:
        self._gradients.settle()

    def _forget_calls(self) -> None:
        self._cells.reset()
        self._jit.reset()

    def _after_fork(self) -> None:
        self._replacements.after_fork()

    def register_custom_api(self, module: Any, api: str, api_prefix: str) -> None:
        self._apis.register(module, api, api_prefix)

    def restore_custom_api(self, module: Any, api: str) -> None:
        self._apis.unregister(module, api)


def _before_each_call(model: Any, count: Any) -> None:
    def before(cell: Any, args: Any) -> None:
        count(cell, args)

    model.register_forward_pre_hook(before, prepend=True)
