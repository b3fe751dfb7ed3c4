"""Functions and cells compiled by ``mindspore.jit``: what goes in and what comes out, and nothing inside."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

from msprobe import _native
from msprobe.core.collection.replacing import Replacements
from msprobe.core.collection.window import Window
from msprobe.core.common.log import logger
from msprobe.mindspore.hooks.executor import sync

_HOMES = ("mindspore.graph.api", "mindspore.common.api")
_EXECUTORS = ("_JitExecutor", "_MindsporeFunctionExecutor")


def _find(names: tuple[str, ...]) -> Any:
    """A class of MindSpore that has moved from version to version."""
    for home in _HOMES:
        try:
            module = importlib.import_module(home)
        except ImportError:
            continue
        for name in names:
            if hasattr(module, name):
                return getattr(module, name)
    return None


class JitHooks:
    """Compiled functions of a run."""

    def __init__(self, collector: _native.Collector, window: Window, replacements: Replacements) -> None:
        self._collector = collector
        self._window = window
        self._replacements = replacements
        self._last: dict[str, _native.ApiBackward] = {}

    def install(self) -> None:
        executor, engine = _find(_EXECUTORS), _find(("_PyNativeExecutor",))
        if executor is None or engine is None:
            logger.warning("Functions compiled by mindspore.jit are not recorded: this version hides them.")
            return
        self._replacements.attribute(executor, "__call__", self._running(executor.__call__))
        self._replacements.attribute(engine, "grad", self._differentiating(engine.grad))

    def _running(self, run: Any) -> Any:
        window, inside = self._window, self._window.inside
        collector, frame = self._collector, sys._getframe

        def __call__(executor: Any, *args: Any, **kwargs: Any) -> Any:
            if not window.apis or inside.api:
                return run(executor, *args, **kwargs)
            is_own = _is_mindspore_s_own(executor)
            if is_own or not args:
                if not is_own:
                    logger.warning("A compiled function without arguments is not recorded.")
                with self._replacements.suspended():
                    return run(executor, *args, **kwargs)
            name = _name_of(executor, args)
            inside.api = True
            call = None
            try:
                sync()
                call = collector.api_begin(collector.add_api(f"Jit.{name}"), args, {}, frame(1))
                # What is compiled has to find the functions themselves.
                with self._replacements.suspended():
                    result = run(executor, *args, **kwargs)
                sync()
                if call is not None:
                    collector.api_end(call, args, {}, result)
                    self._last[name] = collector.api_backward(call)
                return result
            except BaseException:
                if call is not None:
                    collector.api_fail(call)
                raise
            finally:
                inside.api = False

        return __call__

    def _differentiating(self, differentiate: Any) -> Any:
        window, inside = self._window, self._window.inside

        # Grad operation, weights, positions, in newer versions has_aux; then the arguments of the function.
        named = 4 if "has_aux" in inspect.signature(differentiate).parameters else 3

        def grad(engine: Any, function: Any, *rest: Any) -> Any:
            result = differentiate(engine, function, *rest)
            record = self._last.get(_differentiated(function)) if window.apis and not inside.api else None
            if record is not None and len(rest) > named:
                inside.api = True
                try:
                    record((None,), rest[named:])
                finally:
                    inside.api = False
            return result

        return grad

    def reset(self) -> None:
        self._last.clear()


def _is_mindspore_s_own(executor: Any) -> bool:
    """Whether a function is part of MindSpore: some of its optimizers are compiled without being asked."""
    module = getattr(getattr(executor, "fn", None), "__module__", None) or ""
    return str(module).partition(".")[0] == "mindspore"


def _name_of(executor: Any, args: tuple[Any, ...]) -> str:
    owner = getattr(executor, "obj", None)
    if owner is not None and args and args[0] is owner:
        return type(owner).__name__
    return str(getattr(getattr(executor, "fn", None), "__name__", "function"))


def _differentiated(function: Any) -> str:
    """The name under which a function that is compiled was recorded; nothing else has one."""
    construct = getattr(type(function), "construct", None)
    if getattr(construct, "__wrapped_by_jit__", False):
        return type(function).__name__
    code = getattr(function, "__code__", None)
    is_compiled = getattr(function, "__wrapped_by_jit__", False) or (
        code is not None and code.co_name == "staging_specialize"
    )
    return str(getattr(function, "__name__", "")) if is_compiled else ""
