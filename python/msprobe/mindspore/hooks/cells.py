"""Hooks of a model's cells: their calls, their backward passes and the gradients of their parameters."""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Callable

import mindspore as ms

from msprobe import _native
from msprobe.core.collection.window import Window
from msprobe.core.common.log import logger
from msprobe.mindspore.hooks.executor import sync
from msprobe.mindspore.hooks.gradients import Gradients, Watch

# Versions before 2.8 call no hook when a construct raises; the next hook that runs notices.
_AFTER = {
    key: True
    for key in ("with_kwargs", "always_call")
    if key in inspect.signature(ms.nn.Cell.register_forward_hook).parameters
}


class _Running(threading.local):
    """Calls this thread is inside of, outermost first."""

    def __init__(self) -> None:
        self.calls: list[tuple[CellHook, _native.ModuleCall, Any, BaseException | None]] = []


def is_compiled(cell: Any) -> bool:
    """Whether what a cell does is compiled by ``mindspore.jit``."""
    construct: Any = getattr(type(cell), "construct", None)
    code = getattr(construct, "__code__", None)
    is_older = code is not None and code.co_name == "staging_specialize"
    return is_older or bool(getattr(construct, "__wrapped_by_jit__", False))


def descendants(model: Any) -> Iterator[tuple[str, Any]]:
    """The cells below a model with their paths, depth first, each once. Compiled ones are left out with all
    below them."""
    seen = {id(model)}

    def below(cell: Any, path: str) -> Iterator[tuple[str, Any]]:
        for name, child in cell._cells.items():
            if child is None or id(child) in seen or is_compiled(child):
                continue
            seen.add(id(child))
            yield f"{path}{name}", child
            yield from below(child, f"{path}{name}.")

    if not is_compiled(model):
        yield from below(model, "")


def compiled_below(model: Any) -> list[str]:
    """The paths of the compiled cells of a model, nothing of which is called cell by cell."""
    if is_compiled(model):
        return ["the model itself"]
    found: list[str] = []
    seen = {id(model)}

    def look(cell: Any, path: str) -> None:
        for name, child in cell._cells.items():
            if child is None or id(child) in seen:
                continue
            seen.add(id(child))
            if is_compiled(child):
                found.append(f"{path}{name}")
            else:
                look(child, f"{path}{name}.")

    look(model, "")
    return found


class CellHooks:
    """All hooked cells of a run."""

    def __init__(
        self,
        collector: _native.Collector,
        window: Window,
        gradients: Gradients,
        below: Callable[[Any], Iterator[tuple[str, Any]]] | None = None,
        parameters_of: Callable[[Any], dict[str, Any]] | None = None,
    ) -> None:
        self.window = window
        self.parameters_of = parameters_of or _own_parameters
        self._below = below or descendants
        self.gradients = gradients
        self.native = _native.Modules(collector, window, None)
        self.running = _Running()
        self._told: set[str] = set()
        """Classes of cells whose backward passes are not recorded."""
        self._hooked: weakref.WeakSet[Any] = weakref.WeakSet()

    def install(self, models: list[tuple[str, Any]]) -> None:
        """Hooks every cell below the given ones, which are not recorded themselves."""
        for prefix, model in models:
            for path, cell in self._below(model):
                self.hook(cell, f"{prefix}{path}.{type(cell).__name__}")

    def hook(self, cell: Any, stem: str) -> None:
        if cell in self._hooked:
            return
        self._hooked.add(cell)
        hook = CellHook(self, self.native.add(stem))
        cell.register_forward_pre_hook(hook.before, with_kwargs=True)
        cell.register_forward_hook(hook.after, **_AFTER)

    def left(self, cell: Any, watch: Watch, output: Any) -> Any:
        """The output as the caller is to get it; none if it stays as it is."""
        if isinstance(output, (ms.Tensor, tuple)):
            return watch.leave(output)
        watch.cancel()
        kind, told = type(cell).__name__, self._told
        if kind not in told:
            told.add(kind)
            logger.warning(
                f"The output of a {kind} is a {type(output).__name__}: its backward pass is not recorded."
            )
        return None

    def reset(self) -> None:
        """Forgets calls that never came back."""
        self.running.calls.clear()
        self.native.reset()


class CellHook:
    """The hooks of one cell. While nothing is recorded they only count its calls."""

    def __init__(self, hooks: CellHooks | None, cell: int) -> None:
        self._hooks = hooks
        self._cell = cell
        self._parameters: dict[str, _native.ParameterHook] = {}

    def __reduce__(self) -> Any:
        """A copy of a cell, and one that was pickled, is not recorded until it is hooked itself."""
        return CellHook, (None, -1)

    def before(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        hooks = self._hooks
        if hooks is None:
            return None
        inside = hooks.window.inside
        if hooks.gradients.pending is not None:
            hooks.gradients.settle()
        if hooks.window.open:
            sync()
        was_inside, inside.api = inside.api, True
        try:
            call = hooks.native.begin(self._cell, args, kwargs)
            watch = hooks.gradients.of_cell(hooks.native, call, args) if hooks.window.open else None
        finally:
            inside.api = was_inside
        hooks.running.calls.append((self, call, watch, sys.exc_info()[1]))
        return None if watch is None else (watch.args, kwargs)

    def after(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        hooks = self._hooks
        if hooks is None:
            return None
        calls = hooks.running.calls
        while calls:
            hook, call, watch, error = calls.pop()
            if hook is self:
                break
            # Its construct was left by something no hook is told about.
            hooks.native.leave(call)
        else:
            return None
        if not hooks.window.open or sys.exc_info()[1] is not error:
            hooks.native.leave(call)
            return None
        try:
            sync()
        except BaseException:
            hooks.native.leave(call)
            raise
        inside = hooks.window.inside
        was_inside, inside.api = inside.api, True
        try:
            hooks.native.end(
                call, args, kwargs, output, hooks.parameters_of(cell), self._parameters, sys._getframe()
            )
            left = None if watch is None else hooks.left(cell, watch, output)
        finally:
            inside.api = was_inside
        return left


def _own_parameters(cell: Any) -> dict[str, Any]:
    """The parameters of a cell itself, by the last part of their names."""
    return {
        str(parameter.name).rpartition(".")[2]: parameter
        for parameter in cell._params.values()
        if parameter is not None
    }
