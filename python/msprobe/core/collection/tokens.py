"""Windows that name tokens: the calls of a model that generates are counted."""

from __future__ import annotations

import weakref
from typing import Any, Callable

from msprobe.core.collection.window import Window

Called = Callable[[Any], Any]
Hook = Callable[[Any, Callable[[Any, Any], None]], object]


class TokenCounter:
    """Opens the window at one call of a model and closes it after another, in windows that name tokens.

    ``called`` finds what is called once for each token, ``hook`` has a function called before each call. The
    same model may be called in other windows: there it is not counted.
    """

    def __init__(self, window: Window, called: Called, hook: Hook) -> None:
        self._window = window
        self._called = called
        self._hook = hook
        self._first, self._last = 0, 0
        self._calls = 0
        self._counted: weakref.ref[Any] | None = None
        self._hooked: weakref.WeakSet[Any] = weakref.WeakSet()

    def __reduce__(self) -> Any:
        """A copy of a model has a copy of its hook, which never counts."""
        return _counter_of_a_copy, ()

    def arm(self, model: Any, token_range: tuple[int, int]) -> None:
        counted = self._called(model)
        if counted not in self._hooked:
            self._hooked.add(counted)
            self._hook(counted, self._count)
        self._counted = weakref.ref(counted)
        self._first, self._last = token_range
        self._calls = 0

    def disarm(self) -> None:
        self._counted = None

    def _count(self, module: Any, _: Any) -> None:
        if self._counted is None or self._counted() is not module:
            return
        if self._calls == self._first:
            self._window.set(True)
        elif self._calls == self._last + 1:
            self._window.set(False)
        self._calls += 1


def _counter_of_a_copy() -> TokenCounter:
    return TokenCounter(Window(), lambda model: model, lambda model, count: None)
