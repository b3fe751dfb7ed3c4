"""Collective operations: their output is what their arguments are afterwards, for asynchronous ones after ``wait``."""

from __future__ import annotations

import sys
from typing import Any, Callable

import torch
import torch.distributed as dist

from msprobe import _native
from msprobe.pytorch.hooks.window import Window

Function = Callable[..., Any]


class _Pending:
    """A call whose works are not all waited for."""

    def __init__(self, call: _native.ApiCall, args: tuple[Any, ...], kwargs: dict[str, Any], works: int) -> None:
        self.call = call
        self.args = args
        self.kwargs = kwargs
        self.works = works


class Waits:
    """Works that were handed out and not waited for. Holds them, and the arguments, until then or until the step
    ends."""

    def __init__(self, collector: _native.Collector, window: Window) -> None:
        self._collector = collector
        self._window = window
        self._pending: dict[int, tuple[Any, _Pending]] = {}
        self._is_installed = False

    def install(self) -> None:
        """Watches ``Work.wait``; what it returns stays as it is."""
        if self._is_installed or not dist.is_available():
            return
        self._is_installed = True
        original = dist.Work.wait
        done = self._done

        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(work, *args, **kwargs)
            done(work)
            return result

        wait.__doc__ = original.__doc__
        dist.Work.wait = wait  # type: ignore[method-assign]

    def add(self, works: list[Any], call: _native.ApiCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        pending = _Pending(call, args, kwargs, len(works))
        for work in works:
            self._pending[id(work)] = (work, pending)

    def _done(self, work: Any) -> None:
        entry = self._pending.pop(id(work), None)
        if entry is None:
            return
        pending = entry[1]
        pending.works -= 1
        inside = self._window.inside
        before, inside.api = inside.api, True
        try:
            self._collector.collective_end(pending.call, pending.args, pending.kwargs, pending.works == 0)
        finally:
            inside.api = before

    def clear(self) -> None:
        """The step is over: calls nobody waited for stay without output."""
        for _, pending in self._pending.values():
            self._collector.api_fail(pending.call)
        self._pending.clear()


def collective_wrapper(
    original: Function, name: str, api: int, collector: _native.Collector, window: Window, waits: Waits
) -> Function:
    """Like other wrappers, but with the output taken from the arguments."""
    from msprobe.pytorch.hooks.apis import dressed

    begin, fail = collector.api_begin, collector.api_fail
    inside = window.inside
    is_compiling = torch.compiler.is_compiling
    frame = sys._getframe
    is_batch = name == "batch_isend_irecv"

    def api_function(*args: Any, **kwargs: Any) -> Any:
        if not window.apis or is_compiling() or inside.api:
            return original(*args, **kwargs)
        inside.api = True
        call = None
        try:
            call = begin(api, args, kwargs, frame())
            result = original(*args, **kwargs)
            if call is not None:
                works = _works(result)
                if works:
                    waits.add(works, call, args, kwargs)
                    collector.collective_begun(call, args, kwargs, is_batch)
                else:
                    collector.collective_end(call, args, kwargs, True)
            return result
        except BaseException:
            if call is not None:
                fail(call)
            raise
        finally:
            inside.api = False

    return dressed(api_function, original, name)


def _works(result: Any) -> list[Any]:
    candidates = result if isinstance(result, (list, tuple)) else [result]
    return [work for work in candidates if isinstance(work, dist.Work)]
