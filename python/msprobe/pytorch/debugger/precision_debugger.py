"""``PrecisionDebugger``, what a training script talks to.

It decides whether a call is right, and when; the work is its service's.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any, ClassVar, Protocol

import torch

from msprobe import _native
from msprobe.core import collect_config
from msprobe.core.collection import arguments as common
from msprobe.core.common.exceptions import MsprobeException
from msprobe.pytorch import dataloader
from msprobe.pytorch.debugger import arguments
from msprobe.pytorch.framework import PYTORCH
from msprobe.pytorch.kernel_dump import KernelService
from msprobe.pytorch.log import logger
from msprobe.pytorch.seed import seed_as_configured

_LOCK = threading.RLock()


class Service(Protocol):
    """Who does the work. All arguments have been checked."""

    # Its ``dump_path`` can be set between two windows.
    config: Any
    # Whether no start has had an effect yet: the next one that has hooks its models.
    first_start: bool

    def start(self, models: list[tuple[str, Any]] | None, token_range: tuple[int, int] | None) -> None: ...
    def stop(self) -> None: ...
    def step(self) -> None: ...
    def save(self, variable: Any, name: str, save_backward: bool) -> None: ...
    def set_init_step(self, step: int) -> None: ...
    def register_custom_api(self, module: Any, api: str, api_prefix: str) -> None: ...
    def restore_custom_api(self, module: Any, api: str) -> None: ...
    def module_dump(self, module: Any, dump_name: str) -> None: ...
    def module_dump_end(self) -> None: ...
    def reset_status(self) -> None: ...


class PrecisionDebugger:
    """The debugger of this process. There is one; every method can be called on it or on the class."""

    _instance: ClassVar[PrecisionDebugger | None] = None

    # Until the constructor has finished, and for good where it could not.
    _is_built = False

    def __new__(cls, *args: Any, **kwargs: Any) -> PrecisionDebugger:
        with _LOCK:
            if PrecisionDebugger._instance is None:
                PrecisionDebugger._instance = super().__new__(cls)
            return PrecisionDebugger._instance

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        model: Any = None,
        step: list[int | str] | None = None,
    ) -> None:
        given = {
            "config_path": config_path,
            "task": task,
            "dump_path": dump_path,
            "level": level,
            "model": model,
            "step": step,
        }
        with _LOCK:
            if self._is_built:
                self._say_ignored(given)
                return
            self._given = given
            # Whoever catches what is raised below can try again.
            PrecisionDebugger._instance = None
            config = collect_config.resolve(PYTORCH, config_path, task, dump_path, level, step)
            self._build(config, model)
            self._is_built = True
            PrecisionDebugger._instance = self

    def _say_ignored(self, given: dict[str, Any]) -> None:
        """A second construction: its arguments have no effect, which matters where they are others."""
        ignored = [
            "model" if name == "model" else f"{name}={value!r}"
            for name, value in given.items()
            if value is not None
            and value is not self._given[name]
            # Models are not asked whether they are equal.
            and (name == "model" or value != self._given[name])
        ]
        if ignored:
            logger.warning(
                "There is a PrecisionDebugger in this process already, this one is the same: "
                f"{', '.join(ignored)} is ignored."
            )

    def _build(self, config: _native.Config, model: Any) -> None:
        if config.task == "free_benchmark":
            raise common.invalid(
                "the task free_benchmark is not part of this version; collect the run on both devices with "
                "the task statistics or tensor and compare the dumps with `msprobe compare` instead"
            )
        if model is not None:
            logger.warning(
                "The model argument of PrecisionDebugger is deprecated, give the model to start() instead."
            )
        # Not the argument's: scripts have always had the file decide which calls mean something. The gradient
        # probe is the exception, it is chosen by either.
        probes = "grad_probe" in (config.task, config.file_task)
        self.task = config.task if probes else config.file_task
        self.model = model
        # Before the service: what it does at construction must not depend on earlier random numbers.
        seed_as_configured(config.seed, config.is_deterministic)
        self.enable_dataloader = config.enable_dataloader
        self._needs_model = config.level in ("L0", "mix")
        self._saves = self.task in ("statistics", "tensor") and config.level == "debug"
        self._batches = _Batches(self)
        self._gradients = _gradient_monitor(config) if self.task == "grad_probe" else None
        self.service = None if self._gradients is not None else _service(config)
        if self.service is not None and self.enable_dataloader:
            dataloader.install(self._batches)

    @property
    def config(self) -> Any:
        """The configuration in use."""
        return None if self.service is None else self.service.config

    @classmethod
    def start(cls, model: Any = None, token_range: Any = None) -> None:
        """Opens a window: what runs from now on is collected.

        ``model`` is a module or a list of modules, required at levels L0 and mix and with ``token_range``,
        which is the first and the last call of the model to collect, counted from 0.
        """
        with _LOCK:
            self = cls._current()
            if self.service is None:
                return
            tokens = common.checked_token_range(token_range, logger)
            models = self._models(model, tokens)
            if self.enable_dataloader:
                logger.warning("DataLoader is enabled, start() skipped.")
            else:
                self.service.start(models, tokens)

    @classmethod
    def stop(cls) -> None:
        """Closes the window and writes what was collected."""
        with _LOCK:
            self = cls._current()
            if self.service is None:
                return
            if self.enable_dataloader:
                logger.warning("DataLoader is enabled, stop() skipped.")
            else:
                self.service.stop()

    @classmethod
    def forward_backward_dump_end(cls) -> None:
        """The old name of ``stop``."""
        cls.stop()

    @classmethod
    def step(cls) -> None:
        """Ends a training step; to be called in every one, collected or not."""
        with _LOCK:
            service = cls._current().service
            if service is not None:
                service.step()

    @classmethod
    def save(cls, variable: Any, name: str, save_backward: bool = True) -> None:
        """Collects a variable at level debug, and its gradient unless ``save_backward`` is false."""
        with _LOCK:
            self = cls._current()
            if self.service is None or not self._saves:
                return
            if common.can_save(variable, name, save_backward, torch.Tensor):
                self.service.save(variable, name, save_backward)

    @classmethod
    def set_init_step(cls, step: int) -> None:
        """Makes ``step`` the number of the coming step."""
        with _LOCK:
            service = cls._current().service
            first = common.checked_init_step(step)
            if service is not None:
                service.set_init_step(first)

    @classmethod
    def register_custom_api(cls, module: Any, api: str, api_prefix: str | None = None) -> None:
        """Has calls of ``module.api`` collected, under ``api_prefix`` or the module's name."""
        with _LOCK:
            service = cls._current().service
            prefix = common.checked_custom_api(module, api, api_prefix)
            if service is not None:
                service.register_custom_api(module, api, prefix)

    @classmethod
    def restore_custom_api(cls, module: Any, api: str) -> None:
        """Undoes ``register_custom_api``."""
        with _LOCK:
            service = cls._current().service
            if service is not None:
                service.restore_custom_api(module, api)

    @classmethod
    def write_flight_record(cls) -> None:
        """Writes what the flight recorder holds, which is then held no more. Without one it only says so."""
        with _LOCK:
            # Level L2 has no recorder, and its service knows of none.
            write = getattr(cls._current().service, "write_flight_record", None)
            if write is not None:
                write()
            else:
                logger.warning("There is no flight recorder in this configuration.")

    @classmethod
    def monitor(cls, model: Any) -> None:
        """Watches the gradients of a model under the task grad_probe; under others it does nothing.

        From now on they are recorded before each step of an optimizer that has parameters of the model.
        """
        with _LOCK:
            gradients = cls._current()._gradients
            if gradients is not None:
                gradients.monitor([module for _, module in arguments.named_models(model)])

    @classmethod
    def _current(cls) -> PrecisionDebugger:
        instance = PrecisionDebugger._instance
        if instance is None or not instance._is_built:
            raise Exception("PrecisionDebugger instance is not created.")
        return instance

    def _models(self, model: Any, token_range: tuple[int, int] | None) -> list[tuple[str, Any]] | None:
        if not self._needs_model and token_range is None:
            return None
        if model is not None:
            self.model = model
        return arguments.named_models(self.model)


class _Batches:
    """The debugger as the data loader drives it. What a script starts and stops itself is skipped."""

    def __init__(self, debugger: PrecisionDebugger) -> None:
        self._debugger = debugger
        self._was_started = False

    def end_batch(self) -> None:
        service = self._debugger.service
        if service is not None and self._was_started:
            with _LOCK:
                service.stop()
                service.step()

    def begin_batch(self) -> None:
        service = self._debugger.service
        if service is not None:
            with _LOCK:
                self._was_started = True
                service.start(self._debugger._models(None, None), None)


def module_dump(module: Any, dump_name: str) -> None:
    """From now on only ``module`` itself is collected, under ``dump_name``."""
    arguments.checked_module_dump(module, dump_name)
    with _LOCK:
        service = _service_for_module_dump()
        if service is not None:
            service.module_dump(module, dump_name)


def module_dump_end() -> None:
    """Ends ``module_dump``."""
    with _LOCK:
        service = _service_for_module_dump()
        if service is not None:
            service.module_dump_end()


def _service_for_module_dump() -> Service | None:
    instance = PrecisionDebugger._instance
    if instance is None or not instance._is_built:
        raise MsprobeException(
            MsprobeException.INTERFACE_USAGE_ERROR, "PrecisionDebugger instance is not created."
        )
    return instance.service


def _gradient_monitor(config: _native.Config) -> Any:
    return importlib.import_module("msprobe.pytorch.grad_probe.grad_monitor").GradientMonitor(config)


def _service(config: _native.Config) -> Service:
    if config.level == "L2":
        return KernelService(config)
    # Only a debugger needs the hooks; the rest of this package is used without them too.
    service: Service = importlib.import_module("msprobe.pytorch.service").Service(config)
    return service
