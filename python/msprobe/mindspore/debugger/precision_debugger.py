"""``PrecisionDebugger``, what a training script talks to.

It decides whether a call is right, and who does the work: hooks in PyNative mode, MindSpore's own dumper for
static graphs.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any, ClassVar, Protocol

import mindspore as ms

from msprobe.core.collection import arguments as common
from msprobe.mindspore import config as configuration
from msprobe.mindspore.debugger.execution import GRAPH_GE, GRAPH_KBYK, PYNATIVE, execution_mode
from msprobe.mindspore.log import logger
from msprobe.mindspore.msadapter import adapter_module

_LOCK = threading.RLock()


class Service(Protocol):
    """Who does the work. All arguments have been checked."""

    config: Any

    def start(self, models: list[tuple[str, Any]] | None, token_range: tuple[int, int] | None) -> None: ...
    def stop(self) -> None: ...
    def step(self) -> None: ...


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
        step: list[int | str] | None = None,
    ) -> None:
        with _LOCK:
            if self._is_built:
                return
            # Whoever catches what is raised below can try again.
            PrecisionDebugger._instance = None
            adapter = adapter_module()
            self._framework = configuration.words_of(adapter is not None)
            self.settings = configuration.resolve(self._framework, config_path, task, dump_path, level, step)
            self._build(adapter)
            self._is_built = True
            PrecisionDebugger._instance = self

    def _build(self, adapter: Any) -> None:
        settings = self.settings
        self.task = settings.task
        if self.task == "free_benchmark":
            raise common.invalid(
                "the task free_benchmark is not part of this version; collect the run on both devices with "
                "the task statistics or tensor and compare the dumps with `msprobe compare` instead"
            )
        self._adapter = adapter
        self._model: Any = None
        self._gradients = (
            _make("grad_probe.grad_monitor", "GradientMonitor", settings) if self._probes else None
        )
        self._needs_model = settings.level in ("L0", "mix")
        self._saves = settings.level == "debug" and self.task in ("statistics", "tensor")
        self.service: Any = None
        self._graph: Any = None
        if execution_mode() == PYNATIVE and settings.level != "L2" and not self._probes:
            self.service = self._pynative_service()

    @property
    def _probes(self) -> bool:
        return self.task == "grad_probe"

    @property
    def config(self) -> Any:
        """The configuration in use."""
        return self.settings if self.service is None else self.service.config

    def _pynative_service(self) -> Any:
        if self._adapter is not None:
            module = importlib.import_module("msprobe.mindspore.msadapter_service")
            return module.MSAdapterService(self.settings.native, self._framework, self._adapter)
        # Only a debugger needs the hooks; the rest of this package is used without them too.
        return importlib.import_module("msprobe.mindspore.service").Service(
            self.settings.native, self._framework
        )

    @classmethod
    def start(cls, model: Any = None, token_range: Any = None) -> None:
        """Opens a window: what runs from now on is collected.

        ``model`` is a cell or a list of cells, required at levels L0 and mix and with ``token_range``: the
        first and the last call of the model to collect, counted from 0.
        """
        with _LOCK:
            self = cls._current()
            if self._probes:
                return
            tokens = common.checked_token_range(token_range, logger)
            models = self._models(model, tokens)
            self._worker().start(models, tokens)

    @classmethod
    def stop(cls) -> None:
        """Closes the window and writes what was collected."""
        with _LOCK:
            self = cls._current()
            if self._gradients is not None:
                # The reference forgets it.
                self._gradients.stop()
                return
            worker = self.service if self.service is not None else self._graph
            if worker is not None:
                worker.stop()

    @classmethod
    def forward_backward_dump_end(cls) -> None:
        """The old name of ``stop``."""
        cls.stop()

    @classmethod
    def step(cls) -> None:
        """Ends a training step; to be called in every one, collected or not."""
        with _LOCK:
            self = cls._current()
            worker = self.service if self.service is not None else self._graph
            if worker is not None:
                worker.step()

    @classmethod
    def save(cls, variable: Any, name: str, save_backward: bool = True) -> None:
        """Collects a variable at level debug, and its gradient unless ``save_backward`` is false."""
        with _LOCK:
            self = cls._current()
            if not self._saves or self.service is None or execution_mode() != PYNATIVE:
                return
            if common.can_save(variable, name, save_backward, ms.Tensor):
                self.service.save(variable, name, save_backward)

    @classmethod
    def set_init_step(cls, step: int) -> None:
        """Makes ``step`` the number of the coming step."""
        with _LOCK:
            first = common.checked_init_step(step)
            cls._current()._hooks().set_init_step(first)

    @classmethod
    def register_custom_api(cls, module: Any, api: str, api_prefix: str | None = None) -> None:
        """Has calls of ``module.api`` collected, under ``api_prefix`` or the module's name."""
        with _LOCK:
            prefix = common.checked_custom_api(module, api, api_prefix)
            cls._current()._hooks().register_custom_api(module, api, prefix)

    @classmethod
    def restore_custom_api(cls, module: Any, api: str) -> None:
        """Undoes ``register_custom_api``."""
        with _LOCK:
            cls._current()._hooks().restore_custom_api(module, api)

    @classmethod
    def monitor(cls, opt: Any) -> None:
        """Watches the gradients an optimizer is given, under the task grad_probe; else it does nothing."""
        with _LOCK:
            gradients = cls._current()._gradients
            if gradients is not None:
                gradients.monitor(opt)

    @classmethod
    def _current(cls) -> PrecisionDebugger:
        instance = PrecisionDebugger._instance
        if instance is None or not instance._is_built:
            raise Exception("PrecisionDebugger instance is not created.")
        return instance

    def _hooks(self) -> Any:
        """The service of PyNative mode."""
        if self.service is None:
            raise AttributeError("static graphs have no hooks: this works in PyNative mode only")
        return self.service

    def _worker(self) -> Service:
        """Who does the work in the mode MindSpore is in now."""
        mode, settings = execution_mode(), self.settings
        if self._graph is not None:
            return self._graph  # type: ignore[no-any-return]
        if settings.level == "L2":
            self._graph = self._kernel_service(mode)
            return self._graph  # type: ignore[no-any-return]
        if mode == PYNATIVE:
            if self.service is None:
                self.service = self._pynative_service()
            return self.service  # type: ignore[no-any-return]
        self._graph = self._graph_service(mode)
        return self._graph  # type: ignore[no-any-return]

    def _kernel_service(self, mode: str) -> Any:
        if mode != PYNATIVE or self.settings.is_for_graphs:
            return _make("graph.kernel_dump", "GraphKernelService", self.settings, mode)
        return _make("graph.one_api", "OneApiService", self.settings)

    def _graph_service(self, mode: str) -> Any:
        task, level = self.task, self.settings.level
        if task == "structure":
            raise Exception("Valid task is needed.")
        if task in ("statistics", "tensor") and mode == GRAPH_KBYK and level == "L0":
            return _make("graph.cell_dump", "CellDumpService", self.settings)
        assert mode in (GRAPH_GE, GRAPH_KBYK)
        raise ValueError(
            f"a static graph ({mode}) has no task {task} at level {level}: take level L2, or PyNative mode"
        )

    def _models(self, model: Any, token_range: tuple[int, int] | None) -> list[tuple[str, Any]] | None:
        # Kept whether or not this start has an effect: the next one may come without.
        if model is not None:
            named = _named_models(model, self._adapter)
            self._model = named
        if self._model is None:
            if self._needs_model or token_range is not None:
                text = 'The model cannot be None, when level is "L0" or "mix"'
                logger.error(text)
                raise common.invalid(text)
            return None
        models: list[tuple[str, Any]] = self._model
        if token_range is not None and len(models) > 1:
            logger.warning("token_range counts the calls of the first model of the list.")
        return models


def _named_models(model: Any, adapter: Any) -> list[tuple[str, Any]]:
    """The cells to hook, each with what the names of its records begin with."""
    kind = ms.nn.Cell if adapter is None else adapter.nn.Module
    prefix, shown = ("Cell", "mindspore.nn.Cell") if adapter is None else ("Module", "torch.nn.Module")

    def checked(item: Any) -> Any:
        if isinstance(item, kind):
            return item
        text = (
            f"The 'model' parameter must be a {shown} or list[{shown}] type, "
            f"currently there is a {type(item)} type."
        )
        logger.error(text)
        raise common.invalid(text)

    if isinstance(model, (list, tuple)):
        return [(f"{prefix}.{index}.", checked(item)) for index, item in enumerate(model)]
    return [(f"{prefix}.", checked(model))]


def _make(module: str, name: str, *args: Any) -> Any:
    return getattr(importlib.import_module(f"msprobe.mindspore.{module}"), name)(*args)
