"""``enable_dataloader``: torch's ``DataLoader`` drives the debugger, so that a script need not.

Every batch that is asked for ends the step before and starts the next one. Deprecated, for one process only.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

from torch.utils.data import dataloader

_ITERATOR = dataloader._BaseDataLoaderIter


class Driven(Protocol):
    """What is called between batches."""

    def begin_batch(self) -> None: ...
    def end_batch(self) -> None: ...


class _Drive:
    """Who is driven, and the ``__next__`` that was replaced for it."""

    driven: Driven | None = None
    original: Any = None


def install(driven: Driven) -> None:
    """Makes every ``DataLoader`` of the process drive ``driven``, instead of whoever was driven before."""
    _Drive.driven = driven
    if _Drive.original is None:
        _Drive.original = _ITERATOR.__next__
        _ITERATOR.__next__ = _driving(_Drive.original)


def uninstall() -> None:
    """Leaves ``DataLoader`` as torch made it."""
    if _Drive.original is not None:
        _ITERATOR.__next__ = _Drive.original
    _Drive.driven = _Drive.original = None


def _driving(original: Any) -> Any:
    @functools.wraps(original)
    def next_batch(iterator: Any) -> Any:
        driven = _Drive.driven
        if driven is None:
            return original(iterator)
        # The step ends with the request for the next batch, also for the one that ends an epoch; a batch that
        # cannot be had starts nothing.
        driven.end_batch()
        batch = original(iterator)
        driven.begin_batch()
        return batch

    return next_batch
