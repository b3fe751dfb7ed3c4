"""A collection from first start to end, with any framework: when windows open, in which step, on which rank.

What a framework adds is what it overrides: the methods without a body below.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Any, Protocol

from msprobe import _native
from msprobe.core.collect_config import DebuggerConfig
from msprobe.core.collection.window import Window
from msprobe.core.common.log import Logger, log_end
from msprobe.core.common.log import logger as core_logger
from msprobe.core.framework import Adapter


class Tokens(Protocol):
    """Opens the window at one call of a model and closes it after another."""

    def arm(self, model: Any, token_range: tuple[int, int]) -> None: ...
    def disarm(self) -> None: ...


class CollectionService:
    """What a debugger drives; arguments have been checked."""

    _adapter: Adapter
    _tokens: Tokens

    def __init__(self, config: _native.Config, logger: Logger) -> None:
        self.config = DebuggerConfig(config)
        self.window = Window()
        self.first_start = True
        self._logger = logger
        self._init_step = 0
        self._loop = 0
        self._rank: int | None = None
        self._has_ended = False
        self._is_forked = False
        self._is_recorder = config.has_flight_recorder
        self._step_directory: str | None = None
        self._failure: str | None = None

    def _connect(self, adapter: Adapter, config: _native.Config) -> None:
        """Makes the collector, once there is an adapter."""
        self._adapter = adapter
        self._collector = _native.Collector(config, adapter)
        _watch_process(self)

    # ---- what a framework adds

    def _current_rank(self) -> int | None:
        """The rank of this process, none while training is not distributed."""
        raise NotImplementedError

    def _install(self, models: list[tuple[str, Any]] | None, is_first: bool) -> None:
        """A window is about to open: hooks models that are not hooked yet."""

    def _before_end(self) -> None:
        """A step with files ends."""

    def _forget_calls(self) -> None:
        """Calls that never came back are over."""

    def _after_fork(self) -> None:
        """In a forked child."""

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
        self._install(models, is_first)
        if not self._is_recorder:
            self._logger.info("msprobe: debugger.start() is set successfully")
        elif is_first:
            self._logger.info("The flight recorder is on: nothing is written until something goes wrong.")
        if not self._open_step(step):
            return
        if token_range is None or models is None:
            self._tokens.disarm()
            self.window.set(True)
        else:
            self._tokens.arm(models[0][1], token_range)
        if not self._is_recorder:
            self._logger.info(f"Dump switch is turned on at step {step}. ")
            self._logger.info(f"Dump data will be saved in {self._step_path(step)}.")

    def _begin(self) -> bool:
        """The first start that counts. False if this rank is not collected."""
        self._rank = self._current_rank()
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
            self._logger.info(
                "msprobe: debugger.stop() is set successfully. "
                "Please set debugger.start() to turn on the dump switch again. "
            )
        self._flush()
        self._tell_unmeasured()
        for text in self._collector.take_unmatched():
            self._logger.warning(f"{text}.")
        self._check_flight()

    def step(self) -> None:
        if self._has_ended:
            return
        self._close_window()
        if self._collector.has_step():
            self._before_end()
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
        self._forget_calls()
        self._step_directory = None

    def set_init_step(self, step: int) -> None:
        self._init_step, self._loop = step, 0

    def _close_window(self) -> None:
        self.window.set(False)
        self._tokens.disarm()

    def _end(self) -> None:
        self._close_window()
        self._has_ended = True
        log_end(self._logger)

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
            self._logger.warning(
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
            self._logger.warning(text)

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
        self._logger.error(f"Collection stops: {error}. Training goes on.")

    def _report_failure(self) -> None:
        self._logger.error(f"The dump is incomplete: {self._failure}.")

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
        self._after_fork()
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
            self._logger.warning("There is no flight recorder in this configuration.")
            return
        if self._is_forked or self._failure is not None:
            return
        steps, _, _ = self._collector.flight_holding()
        if steps:
            self._collector.write_flight(has_crashed)
            self._note_failure()
        elif not has_crashed:
            self._logger.info("The flight recorder holds nothing.")

    def _note_failure(self) -> None:
        error = self._collector.failure()
        if error is not None:
            self._fail(error)

    # ---- variables

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        step = self.current_step
        if self._has_ended or self._failure is not None or not self.config.wants_step(step):
            return
        if self.first_start:
            self._rank = self._current_rank()
            self.first_start = False
        if self._open_step(step):
            inside = self.window.inside
            before, inside.api = inside.api, True
            try:
                self._collector.save_variable(variable, name, save_backward)
            finally:
                inside.api = before


def _watch_process(service: CollectionService) -> None:
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
