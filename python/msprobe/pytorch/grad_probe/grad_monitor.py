"""Watches the gradients of models: one hook before every optimizer's step, and what is told to the Rust core.

The core measures, names files and writes; here is decided which optimizer calls make a step, and which
parameters are asked for their gradients.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from msprobe import _native
from msprobe.core.common.exceptions import MsprobeException
from msprobe.core.common.file_check import make_directory
from msprobe.core.tensor import describe
from msprobe.pytorch.grad_probe.sources import Partitions, gradient_of, is_partitioned, parameters_of
from msprobe.pytorch.log import current_rank, logger


class _Watched(NamedTuple):
    name: str
    parameter: weakref.ref[torch.Tensor]


class GradientMonitor:
    """Records the gradients of the models it was given. Keeps neither models nor optimizers alive."""

    def __init__(self, config: _native.Config) -> None:
        if int(torch.__version__.split(".")[0]) < 2:
            raise MsprobeException(
                MsprobeException.INTERFACE_USAGE_ERROR,
                f"the gradient probe needs PyTorch 2.0 or newer, this is {torch.__version__}",
            )
        self._config = config
        logger.info(f"target rank {config.rank}")
        logger.info(f"target step {config.step}")
        if Path(config.dump_path).exists():
            logger.warning(f"files in {config.dump_path} are replaced by those of the same name")
        make_directory(config.dump_path)
        self._probe = _native.GradientProbe(config)
        self._models: list[weakref.ref[torch.nn.Module]] = []
        self._watched: list[_Watched] = []
        self._positions: dict[int, int] = {}
        self._step = -1
        # What each optimizer has stepped in this iteration.
        self._stepped: weakref.WeakKeyDictionary[Any, set[int]] = weakref.WeakKeyDictionary()
        self._open: _native.GradientStep | None = None
        self._recorded: set[int] = set()
        self._rank: int | None = None
        self._is_over = False
        self._told: set[str] = set()
        self._hook: Any = None
        self._lock = threading.RLock()
        self._process = os.getpid()
        atexit.register(_finish, weakref.ref(self))

    def monitor(self, models: Iterable[torch.nn.Module]) -> None:
        """Watches these models too."""
        with self._lock:
            for model in models:
                self._add(model)
            if self._hook is None:
                from torch.optim.optimizer import register_optimizer_step_pre_hook

                hook = weakref.WeakMethod(self._before_step)
                self._hook = register_optimizer_step_pre_hook(_weakly(hook))

    def flush(self) -> None:
        """Waits until everything is on disk."""
        if os.getpid() == self._process:
            self._probe.flush()
            self._tell_failure()

    # ---- what is watched

    def _add(self, model: torch.nn.Module) -> None:
        if any(known() is model for known in self._models):
            self._warn_once("PrecisionDebugger.monitor: this model is watched already")
            return
        self._models.append(weakref.ref(model))
        before = len(self._watched)
        self._collect_names()
        if current_rank() in (None, 0):
            logger.info("> parameter names:")
            for watched in self._watched[before:]:
                logger.info(f"    {watched.name}")

    def _collect_names(self) -> None:
        """Parameters can be exchanged for others after `monitor`, as FSDP does; names stay."""
        self._watched, self._positions = [], {}
        names: set[str] = set()
        for index, known in enumerate(self._models):
            model = known()
            for name, parameter in [] if model is None else model.named_parameters():
                if id(parameter) in self._positions:
                    continue
                if name in names:
                    prefixed = f"model{index}.{name}"
                    self._warn_once(
                        f"two models have a parameter {name}: the second is recorded as {prefixed}"
                    )
                    name = prefixed
                names.add(name)
                self._positions[id(parameter)] = len(self._watched)
                self._watched.append(_Watched(name, weakref.ref(parameter)))

    def _owned(self, optimizer: torch.optim.Optimizer, partitions: Partitions) -> set[int]:
        """Positions of the watched parameters whose values this step changes."""
        if any(watched.parameter() is None for watched in self._watched):
            self._collect_names()
        owned = {self._positions.get(id(parameter), -1) for parameter in parameters_of(optimizer)}
        owned.discard(-1)
        if owned or not self._watched:
            return owned
        alive = [(at, watched.parameter()) for at, watched in enumerate(self._watched)]
        owned = {at for at, parameter in alive if parameter is not None and partitions.has(parameter)}
        if not owned and _works_on_copies(optimizer, [item for _, item in alive if item is not None]):
            owned = {at for at, _ in alive}
        return owned

    # ---- steps

    def _before_step(self, optimizer: Any) -> None:
        if self._is_over or os.getpid() != self._process:
            return
        try:
            with self._lock:
                self._record(optimizer)
        except Exception as error:
            # Training goes on whatever happens here.
            self._warn_once(f"grad_probe: step {self._step} is not recorded: {error!r}")

    def _record(self, optimizer: torch.optim.Optimizer) -> None:
        partitions = Partitions(optimizer)
        owned = self._owned(optimizer, partitions)
        if not owned:
            return
        begins = self._begins_iteration(optimizer, owned)
        if begins:
            self._begin_step()
        self._stepped.setdefault(optimizer, set()).update(owned)
        if self._open is None:
            return
        asked = range(len(self._watched)) if begins else sorted(owned - self._recorded)
        if self._add_rows(asked, partitions) or begins:
            self._open.finish()
            if begins:
                logger.info(f"write grad data to {self._open.csv_path}")
        self._tell_failure()

    def _begins_iteration(self, optimizer: torch.optim.Optimizer, owned: set[int]) -> bool:
        """Whether an optimizer has come round again.

        Several optimizers make one step, and so do several calls of one optimizer for different parameters.
        """
        return not self._stepped or bool(owned & self._stepped.get(optimizer, set()))

    def _begin_step(self) -> None:
        self._step += 1
        self._stepped.clear()
        self._recorded = set()
        self._open = None
        if self._rank is None:
            rank = current_rank()
            if rank is not None and not self._config.wants_rank(rank):
                self._is_over = True
                return
            self._rank = rank or 0
        if self._config.ends_before(self._step):
            self._is_over = True
            return
        logger.info(f"grad_probe: optimizer step {self._step}")
        if not self._config.wants_step(self._step):
            return
        self._open = self._probe.begin(self._rank, self._step)
        if self._open is None:
            self._tell_failure()
        elif self._open.replaces:
            logger.warning(f"{self._open.csv_path} will be deleted")

    def _add_rows(self, positions: Iterable[int], partitions: Partitions) -> bool:
        added = False
        for position in positions:
            name, known = self._watched[position]
            parameter = known()
            if parameter is None or not self._config.wants_parameter(name):
                continue
            try:
                added |= self._add_row(position, name, parameter, partitions)
            except Exception as error:
                self._warn_once(f"grad_probe: the gradient of {name} is not recorded: {error!r}")
        return added

    def _add_row(self, position: int, name: str, parameter: torch.Tensor, partitions: Partitions) -> bool:
        gradient = gradient_of(parameter, partitions)
        if gradient is None:
            if not is_partitioned(parameter):
                logger.info(f"grad is None: {name}")
            return False
        assert self._open is not None
        notice = self._open.add(position, name + gradient.suffix, describe(gradient.tensor))
        self._recorded.add(position)
        if notice is not None:
            self._warn_once(f"grad_probe: the gradient of {name}: {notice}")
        return True

    def _tell_failure(self) -> None:
        failure = self._probe.take_failure()
        if failure is not None:
            logger.error(f"{failure}; the gradient probe ends here, training goes on")
            self._is_over = True

    def _warn_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            logger.warning(text)


def _works_on_copies(optimizer: torch.optim.Optimizer, parameters: list[torch.Tensor]) -> bool:
    """Whether an optimizer that has none of the parameters stands for them all the same.

    Mixed precision gives it copies in float32. Megatron-LM then keeps gradients in `main_grad`; others have
    copies of the same shapes, in the same order.
    """
    if any(hasattr(parameter, "main_grad") for parameter in parameters):
        return True
    originals = iter(parameters)
    copies = list(parameters_of(optimizer))
    return bool(copies) and all(
        any(copy.shape == original.shape and copy.dtype != original.dtype for original in originals)
        for copy in copies
    )


def _weakly(method: weakref.WeakMethod[Any]) -> Any:
    """A hook that does not keep its monitor alive."""

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        alive = method()
        if alive is not None:
            alive(optimizer)

    return before_step


def _finish(known: weakref.ref[GradientMonitor]) -> None:
    alive = known()
    if alive is not None:
        alive.flush()
