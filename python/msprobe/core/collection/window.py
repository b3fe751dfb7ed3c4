"""Whether anything is being recorded, as cheaply as it can be asked."""

from __future__ import annotations

import gc
import threading
from typing import Callable


class _Inside(threading.local):
    """What this thread is in the middle of."""

    api = False


class Window:
    """Open between ``start`` and ``stop``. Hooks read the attributes, nobody else writes them."""

    def __init__(self) -> None:
        self.open = False
        """Modules and gradients are recorded."""
        self.apis = False
        """Wrapped functions are recorded too; not so during ``module_dump``."""
        self.paused = False
        self._has_frozen = False
        self.inside = _Inside()
        self.on_change: list[Callable[[], None]] = []
        """Told when any of the above has changed."""

    def set(self, is_open: bool) -> None:
        if is_open != self.open:
            self._rest_collector(is_open)
        self._switch(is_open, self.paused)

    def _switch(self, is_open: bool, paused: bool) -> None:
        before = (self.open, self.paused)
        self.open, self.paused = is_open, paused
        self.apis = is_open and not paused
        if before != (is_open, paused):
            for told in self.on_change:
                told()

    def _rest_collector(self, is_open: bool) -> None:
        """Keeps Python's garbage collector from walking all that lives already, each time the hooks have made
        enough small objects to start it. What is made from now on is collected as ever."""
        if is_open and gc.get_freeze_count() == 0:
            gc.freeze()
            self._has_frozen = True
        elif not is_open and self._has_frozen:
            gc.unfreeze()
            self._has_frozen = False

    def pause_apis(self, paused: bool) -> None:
        self._switch(self.open, paused)
