"""Collective operations: their output is what their arguments are afterwards, if need be after ``wait``."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from msprobe import _native
from msprobe.core.collection.replacing import ByAttribute
from msprobe.core.collection.window import Window


class _Pending:
    """A call whose works are not all waited for."""

    def __init__(
        self, call: _native.ApiCall, args: tuple[Any, ...], kwargs: dict[str, Any], works: int
    ) -> None:
        self.call = call
        self.args = args
        self.kwargs = kwargs
        self.works = works


class Waits:
    """Works that were handed out and not waited for, with their arguments, until the step ends."""

    def __init__(self, collector: _native.Collector, window: Window) -> None:
        self._collector = collector
        self._window = window
        self._pending: dict[int, tuple[Any, _Pending]] = {}
        self._watched: ByAttribute | None = None

    def set(self, is_open: bool) -> None:
        """Watches ``Work.wait`` while a window is open and until the last work of it was waited for; what it
        returns stays as it is."""
        if is_open and self._watched is None and dist.is_available():
            self._watched = ByAttribute(dist.Work, "wait", self._wait(dist.Work.wait))
            self._watched.put()
        self._take_off_when_done()

    def _wait(self, original: Any) -> Any:
        done = self._done

        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(work, *args, **kwargs)
            done(work)
            return result

        wait.__doc__ = original.__doc__
        return wait

    def _take_off_when_done(self) -> None:
        if self._watched is not None and not self._window.open and not self._pending:
            self._watched.take_off()
            self._watched = None

    def end(self, call: _native.ApiCall, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """A collective has returned: it is complete, or there are works to wait for."""
        works = _works(result)
        if not works:
            self._collector.collective_end(call, args, kwargs, True)
            return
        pending = _Pending(call, args, kwargs, len(works))
        for work in works:
            self._pending[id(work)] = (work, pending)
        # Several works at once: what the arguments are now may be all that is ever known.
        self._collector.collective_begun(call, args, kwargs, isinstance(result, list))

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
            self._take_off_when_done()

    def clear(self) -> None:
        """The step is over: calls nobody waited for stay without output."""
        for _, pending in self._pending.values():
            self._collector.api_fail(pending.call)
        self._pending.clear()
        self._take_off_when_done()


def _works(result: Any) -> list[Any]:
    candidates = result if isinstance(result, (list, tuple)) else [result]
    return [work for work in candidates if isinstance(work, dist.Work)]
