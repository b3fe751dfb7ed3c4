"""A collection from first start to end: when windows open, in which step, on which rank, with which hooks."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Any

import torch

from msprobe import _native
from msprobe.core.collect_config import DebuggerConfig
from msprobe.core.common.log import logger as core_logger
from msprobe.pytorch.hooks import autograd
from msprobe.pytorch.hooks.adapter import Adapter
from msprobe.pytorch.hooks.apis import ApiHooks
from msprobe.pytorch.hooks.collectives import Waits
from msprobe.pytorch.hooks.compiling import Compilation
from msprobe.pytorch.hooks.modules import ModuleHook, ModuleHooks
from msprobe.pytorch.hooks.phases import WholeRecomputation, install_phases
from msprobe.pytorch.hooks.replacing import Replacements
from msprobe.pytorch.hooks.scripting import scriptable
from msprobe.pytorch.hooks.window import Window
from msprobe.pytorch.log import current_rank, log_end, logger


class Service:
    """What ``PrecisionDebugger`` drives; arguments have been checked."""

    def __init__(self, config: _native.Config) -> None:
        self.config = DebuggerConfig(config)
        self.window = Window()
        self.first_start = True
        self._init_step = 0
        self._loop = 0
        self._rank: int | None = None
        self._has_ended = False
        self._is_forked = False
        self._is_recorder = config.has_flight_recorder
        self._step_directory: str | None = None
        self._failure: str | None = None
        self._tokens = TokenCounter(self.window)
        self._dumped: ModuleHook | None = None
        self._adapter = Adapter(self.window, self._error_log, config.sketch)
        self._collector = _native.Collector(config, self._adapter)
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
            self._adapter.border = self._border
        self._adapter.on_notice = self._flush_when_over
        self._install()
        _watch_process(self)

    def _install(self) -> None:
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

    @property
    def current_step(self) -> int:
        return self._init_step + self._loop

    # ---- windows

    def start(self, models: list[tuple[str, Any]] | None, token_range: tuple[int, int] | None) -> None:
        if self.config.level == "debug" or self._has_ended or self._failure is not None:
            return
        step = self.current_step
        if self.config.ends_before(step) or self._collector.is_over():
            self._end()
            return
        if not self.config.wants_step(step):
            return
        is_first = self.first_start
        if is_first and not self._begin():
            return
        if models is not None and self.config.level in ("L0", "mix"):
            self._modules.install(models)
            if is_first:
                core_logger.info(
                    f"The module {self.config.task} hook function is successfully mounted to the model."
                )
        if self.config.level in ("L1", "mix"):
            # An extension may have been imported since the debugger was made.
            self._apis.install()
        if not self._is_recorder:
            logger.info("msprobe: debugger.start() is set successfully")
        elif is_first:
            logger.info("The flight recorder is on: nothing is written until something goes wrong.")
        if not self._open_step(step):
            return
        if token_range is None or models is None:
            self._tokens.disarm()
            self.window.set(True)
        else:
            self._tokens.arm(models[0][1], token_range)
        if not self._is_recorder:
            logger.info(f"Dump switch is turned on at step {step}. ")
            logger.info(f"Dump data will be saved in {self._step_path(step)}.")

    def _begin(self) -> bool:
        """The first start that counts. False if this rank is not collected."""
        self._rank = current_rank()
        if not self.config.wants_rank(self._rank):
            return False
        self.first_start = False
        return True

    def stop(self) -> None:
        if self.config.level == "debug" or self._has_ended or self.first_start:
            return
        if self._failure is not None:
            self._report_failure()
            return
        if not self.config.wants_step(self.current_step) or not self._collector.has_step():
            return
        self._close_window()
        if not self._is_recorder:
            logger.info(
                "msprobe: debugger.stop() is set successfully. "
                "Please set debugger.start() to turn on the dump switch again. "
            )
        self._flush()
        self._tell_unmeasured()
        for text in self._collector.take_unmatched():
            logger.warning(f"{text}.")
        self._check_flight()

    def step(self) -> None:
        if self._has_ended:
            return
        self._close_window()
        if self._collector.has_step():
            self._waits.clear()
            self._flush()
            self._tell_unmeasured()
        self._check_flight()
        self._loop += 1
        self.reset_status()
        if self._is_recorder and self._failure is None:
            self._note_failure()
            if self._failure is None and self._collector.is_over():
                self._end()

    def reset_status(self) -> None:
        """Counters start again, and files are finished."""
        self._collector.end_step()
        self._modules.reset()
        self._step_directory = None

    def set_init_step(self, step: int) -> None:
        self._init_step, self._loop = step, 0

    def _close_window(self) -> None:
        self.window.set(False)
        self._tokens.disarm()

    def _end(self) -> None:
        self._close_window()
        self._has_ended = True
        log_end()

    # ---- files

    def _step_path(self, step: int) -> str:
        return f"{self.config.dump_path.rstrip('/')}/step{step}"

    def _open_step(self, step: int) -> bool:
        if self._collector.has_step():
            return True
        try:
            directory, earlier = self._collector.open_step(self.config.dump_path, step, self._rank)
        except OSError as error:
            self._fail(str(error))
            return False
        # None for a flight recorder.
        self._step_directory = directory
        if earlier is not None:
            files, tensors = earlier
            logger.warning(
                f"{directory} holds a dump of an earlier run: its {files} JSON files are replaced"
                + (f", its {tensors} tensor files stay unless they are written again" if tensors else "")
                + ". Choose an empty dump_path to keep runs apart."
            )
        return True

    def _flush(self) -> None:
        error = self._collector.flush()
        if error is not None:
            self._fail(error)
            return
        if self.config.level != "debug" and self._collector.is_on_disk():
            core_logger.info(f"dump.json is at {self._step_path(self.current_step)}. ")

    def _tell_unmeasured(self) -> None:
        """Values without figures, in one line for the step; what comes after ``stop`` is told by ``step``."""
        if self._is_recorder and not self._collector.is_on_disk():
            return
        text = self._collector.unmeasured()
        if text is not None:
            logger.warning(text)

    def _flush_when_over(self) -> None:
        """All overflows that were asked for are there."""
        if self._collector.is_over() and self.window.open:
            self._close_window()
            self._flush()

    def _fail(self, error: str) -> None:
        """Collection is over because it cannot be written; training goes on."""
        self._close_window()
        if self._failure == error:
            return
        self._failure = error
        logger.error(f"Collection stops: {error}. Training goes on.")

    def _report_failure(self) -> None:
        logger.error(f"The dump is incomplete: {self._failure}.")

    def _error_log(self) -> str | None:
        return f"{self._step_directory}/dump_error_info.log" if self._step_directory is not None else None

    def finish(self) -> None:
        """The interpreter exits: what is recorded gets to disk."""
        if self._is_forked:
            return
        self._close_window()
        if self._collector.has_step():
            self._flush()
            self._tell_unmeasured()
            self._check_flight()
            self._collector.end_step()
        if self._is_recorder and self._failure is None and _has_crashed():
            self.write_flight_record(has_crashed=True)

    def abandon(self) -> None:
        """In a forked child: the parent writes, this process only trains."""
        self._replacements.after_fork()
        self.window.set(False)
        self._has_ended = True
        self._is_forked = True

    # ---- flight recorder

    def _check_flight(self) -> None:
        """Other ranks may have written, and somebody may ask for what is held."""
        if self._is_recorder and self._failure is None:
            self._collector.check_flight(self.current_step)
            self._note_failure()

    def write_flight_record(self, has_crashed: bool = False) -> None:
        if not self._is_recorder:
            logger.warning("There is no flight recorder in this configuration.")
            return
        if self._is_forked or self._failure is not None:
            return
        steps, _, _ = self._collector.flight_holding()
        if steps:
            self._collector.write_flight(has_crashed)
            self._note_failure()
        elif not has_crashed:
            logger.info("The flight recorder holds nothing.")

    def _note_failure(self) -> None:
        error = self._collector.failure()
        if error is not None:
            self._fail(error)

    # ---- single modules, functions and variables

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        step = self.current_step
        if self._has_ended or self._failure is not None or not self.config.wants_step(step):
            return
        if self.first_start:
            self._rank = current_rank()
            self.first_start = False
        if self._open_step(step):
            inside = self.window.inside
            before, inside.api = inside.api, True
            try:
                self._collector.save_variable(variable, name, save_backward)
            finally:
                inside.api = before

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


class TokenCounter:
    """Opens the window at one call of a model and closes it after another, in windows that name tokens.

    The same model may be called in other windows: there it is not counted.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._first, self._last = 0, 0
        self._calls = 0
        self._counted: weakref.ref[torch.nn.Module] | None = None
        self._hooked: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()

    def __reduce__(self) -> Any:
        """A copy of a model has a copy of its hook, which never counts."""
        return _counter_of_a_copy, ()

    def arm(self, model: torch.nn.Module, token_range: tuple[int, int]) -> None:
        counted = _generating(model)
        if counted not in self._hooked:
            self._hooked.add(counted)
            counted.register_forward_pre_hook(self._count, prepend=True)
        self._counted = weakref.ref(counted)
        self._first, self._last = token_range
        self._calls = 0

    def disarm(self) -> None:
        self._counted = None

    def _count(self, module: torch.nn.Module, _: Any) -> None:
        if self._counted is None or self._counted() is not module:
            return
        if self._calls == self._first:
            self._window.set(True)
        elif self._calls == self._last + 1:
            self._window.set(False)
        self._calls += 1


def _counter_of_a_copy() -> TokenCounter:
    return TokenCounter(Window())


def _generating(model: torch.nn.Module) -> torch.nn.Module:
    """The module that is called once per token. Wrappers for training hand each call on to what they wrap,
    and a generating loop calls that one itself."""
    while type(model).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel"):
        model = model.module
    return model


def _watch_process(service: Service) -> None:
    """Writes what is there when the interpreter exits; a forked child leaves the files alone."""
    known = weakref.ref(service)

    def at_exit() -> None:
        alive = known()
        if alive is not None:
            alive.finish()

    def in_child() -> None:
        alive = known()
        if alive is not None:
            alive.abandon()

    atexit.register(at_exit)
    os.register_at_fork(after_in_child=in_child)


def _has_crashed() -> bool:
    """Whether the interpreter exits because of an exception nobody caught; it leaves it there."""
    return getattr(sys, "last_value", None) is not None


def _has_megatron() -> bool:
    return "megatron.core" in sys.modules
