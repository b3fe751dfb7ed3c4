"""Watches the gradients an optimizer is given: a hook before its call, and what is told to the Rust core."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Any

import mindspore as ms

from msprobe import _native
from msprobe.core.collection.arguments import invalid
from msprobe.core.tensor import describe
from msprobe.mindspore.config import Settings
from msprobe.mindspore.hooks.adapter import host_array
from msprobe.mindspore.log import current_rank, logger


class GradientMonitor:
    """Records the gradients of the optimizers it was given. A call of one of them is a step."""

    def __init__(self, settings: Settings) -> None:
        self._config = settings.native
        logger.info(f"target rank {self._config.rank}")
        logger.info(f"target step {self._config.step}")
        self._probe = _native.GradientProbe(self._config)
        self._step = -1
        self._is_over = False
        self._told: set[str] = set()
        self._process = os.getpid()
        atexit.register(_finish, weakref.ref(self))

    def monitor(self, optimizer: Any) -> None:
        """Watches this optimizer too."""
        if not isinstance(optimizer, ms.nn.Optimizer):
            raise invalid(
                f"the gradient probe watches a mindspore.nn.Optimizer, not a {type(optimizer).__name__}"
            )
        parameters = getattr(optimizer, "_parameters", None)
        if parameters is None:
            parameters = getattr(optimizer, "parameters", None)
        if parameters is None:
            raise ValueError("the optimizer has no list of parameters")
        names = [str(parameter.name) for parameter in parameters]
        logger.info("> parameter names:")
        for name in names:
            logger.info(f"    {name}")
        if ms.get_context("mode") != ms.PYNATIVE_MODE:
            logger.warning(
                "The gradient probe records in PyNative mode: a static graph calls no hook, and nothing is "
                "recorded of it."
            )

        def before(_: Any, args: tuple[Any, ...]) -> None:
            self._before_call(names, args)

        optimizer.register_forward_pre_hook(before)

    def stop(self) -> None:
        """Waits until everything is on disk."""
        if os.getpid() == self._process:
            self._probe.flush()
            self._tell_failure()

    def _before_call(self, names: list[str], args: tuple[Any, ...]) -> None:
        if self._is_over or os.getpid() != self._process or not args:
            return
        try:
            self._record(names, args[0])
        except Exception as error:
            # Training goes on whatever happens here.
            self._warn_once(f"grad_probe: step {self._step} is not recorded: {error!r}")

    def _record(self, names: list[str], gradients: Any) -> None:
        self._step += 1
        rank = current_rank() or 0
        if not self._config.wants_rank(rank) or self._config.ends_before(self._step):
            self._is_over = True
            return
        if not self._config.wants_step(self._step):
            return
        step = self._probe.begin(rank, self._step)
        if step is None:
            self._tell_failure()
            return
        if step.replaces:
            logger.warning(f"{step.csv_path} will be deleted")
        for position, (name, gradient) in enumerate(zip(names, gradients)):
            if not self._config.wants_parameter(name):
                continue
            try:
                notice = step.add(position, name, describe(host_array(gradient)))
            except Exception as error:
                self._warn_once(f"grad_probe: the gradient of {name} is not recorded: {error!r}")
                continue
            if notice is not None:
                self._warn_once(f"grad_probe: the gradient of {name}: {notice}")
        step.finish()
        logger.info(f"write grad data to {step.csv_path}")
        self._tell_failure()

    def _tell_failure(self) -> None:
        failure = self._probe.take_failure()
        if failure is not None:
            logger.error(f"{failure}; the gradient probe ends here, training goes on")
            self._is_over = True

    def _warn_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            logger.warning(text)


def _finish(known: weakref.ref[GradientMonitor]) -> None:
    alive = known()
    if alive is not None:
        alive.stop()
