"""A collection from PyTorch: its hooks, around what is the same with every framework."""

from __future__ import annotations

import sys
from typing import Any

import torch

from msprobe import _native
from msprobe.core.collection.replacing import Replacements
from msprobe.core.collection.service import CollectionService
from msprobe.core.collection.tokens import TokenCounter
from msprobe.core.common.log import logger as core_logger
from msprobe.pytorch.hooks import autograd
from msprobe.pytorch.hooks.adapter import Adapter
from msprobe.pytorch.hooks.apis import ApiHooks
from msprobe.pytorch.hooks.collectives import Waits
from msprobe.pytorch.hooks.compiling import Compilation
from msprobe.pytorch.hooks.modules import ModuleHook, ModuleHooks
from msprobe.pytorch.hooks.phases import WholeRecomputation, install_phases
from msprobe.pytorch.hooks.scripting import scriptable
from msprobe.pytorch.log import current_rank, logger


class Service(CollectionService):
    """What ``PrecisionDebugger`` drives; arguments have been checked."""

    def __init__(self, config: _native.Config) -> None:
        super().__init__(config, logger)
        self._tokens = TokenCounter(self.window, _generating, _before_each_call)
        self._dumped: ModuleHook | None = None
        adapter = Adapter(self.window, self._error_log, config.sketch)
        self._connect(adapter, config)
        if config.input_gradients:
            self._collector.watch_function_gradients(autograd)
        self._waits = Waits(self._collector, self.window)
        self._replacements = Replacements()
        self._compilation = Compilation(self._collector, self._replacements)
        self._recomputation = WholeRecomputation()
        self._script = scriptable(self._replacements)
        self._apis = ApiHooks(self._collector, self.window, self._waits, self._replacements)
        self._modules = ModuleHooks(self._collector, self.window)
        if config.level == "mix":
            adapter.border = self._border
        adapter.on_notice = self._flush_when_over
        self._wrap()

    def _wrap(self) -> None:
        config = self.config
        core_logger.info("No megatron find." if not _has_megatron() else "Megatron is watched.")
        self.window.on_change.append(self._switch_hooks)
        if config.level in ("L1", "mix"):
            self._apis.install()
            self._compilation.install()
            core_logger.info(f"The api {config.task} hook function is successfully mounted to the model.")
        if config.level == "mix":
            install_phases(self._collector, self.window, self._replacements)

    def _switch_hooks(self) -> None:
        """A window has opened or closed: outside of windows everything is as without us."""
        window = self.window
        self._recomputation.set(window.open)
        self._waits.set(window.open)
        self._compilation.set(window.open)
        if window.open:
            # It stays: modules keep their hooks, and are scripted without them.
            self._script.put()
        if window.apis:
            self._replacements.open()
        else:
            self._replacements.close()

    def _current_rank(self) -> int | None:
        return current_rank()

    def _install(self, models: list[tuple[str, Any]] | None, is_first: bool) -> None:
        if models is not None and self.config.level in ("L0", "mix"):
            self._modules.install(models)
            if is_first:
                core_logger.info(
                    f"The module {self.config.task} hook function is successfully mounted to the model."
                )
        if self.config.level in ("L1", "mix"):
            # An extension may have been imported since the debugger was made.
            self._apis.install()

    def _before_end(self) -> None:
        self._waits.clear()

    def _forget_calls(self) -> None:
        self._modules.reset()

    def _after_fork(self) -> None:
        self._replacements.after_fork()

    # ---- single modules and functions

    def register_custom_api(self, module: Any, api: str, api_prefix: str) -> None:
        self._apis.register(module, api, api_prefix)

    def restore_custom_api(self, module: Any, api: str) -> None:
        self._apis.unregister(module, api)

    def module_dump(self, module: torch.nn.Module, dump_name: str) -> None:
        self.window.pause_apis(True)
        hook = getattr(module, "_msprobe_module_dump", None)
        if hook is None or hook.is_copy:
            if self._modules.is_hooked(module):
                logger.info("The init dump hooks already exist, module dump is unavailable for this module.")
                return
            hook = self._modules.hook(module, f"Module.{dump_name}.{type(module).__name__}")
            if hook is None:
                return
            object.__setattr__(module, "_msprobe_module_dump", hook)
        hook.is_enabled = True
        self._dumped = hook

    def module_dump_end(self) -> None:
        self.window.pause_apis(False)
        if self._dumped is not None:
            self._dumped.is_enabled = False
            self._dumped = None

    def _border(self, tensor: Any, api: int, index: int) -> bool:
        """A function returned its argument, which stands at the border of a module: so does its gradient."""
        found = self._modules.native.boundary(tensor)
        if found is None:
            return False
        # After the module's own record where gradients leave it, before those inside where they come in.
        serial = found.serial if found.kind == "input" else None
        collector = self._collector
        found.attach(lambda grads: collector.border_backward(api, index, serial, tuple(grads)))
        return True


def _before_each_call(model: torch.nn.Module, count: Any) -> None:
    model.register_forward_pre_hook(count, prepend=True)


def _generating(model: torch.nn.Module) -> torch.nn.Module:
    """The module that is called once per token. Wrappers for training hand each call on to what they wrap,
    and a generating loop calls that one itself."""
    while type(model).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel"):
        model = model.module
    return model


def _has_megatron() -> bool:
    return "megatron.core" in sys.modules
