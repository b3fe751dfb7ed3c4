"""What adapters of all frameworks share: where they complain, and how values of no framework are told."""

from __future__ import annotations

import binascii
import dataclasses
import os
import time
import traceback
from pathlib import Path
from typing import Any, Callable

from msprobe.core.common.log import logger
from msprobe.core.framework import Kind

_FIRST: tuple[tuple[type, Kind], ...] = (
    (bool, Kind.BOOL),
    (slice, Kind.SLICE),
    (type(Ellipsis), Kind.ELLIPSIS),
)
_PLAIN: tuple[tuple[type, Kind], ...] = ((int, Kind.INT), (float, Kind.FLOAT), (str, Kind.STR))


class Told:
    """The part of an adapter that logs, and notes what could not be recorded."""

    def __init__(self, error_log: Callable[[], str | None]) -> None:
        self._error_log = error_log
        self._has_errors = False
        self.on_notice: Callable[[], None] | None = None

    def tell(self, notices: list[tuple[bool, str]]) -> None:
        """Logs what happened, warnings and information."""
        for is_warning, text in notices:
            (logger.warning if is_warning else logger.info)(text)
        if notices and self.on_notice is not None:
            self.on_notice()

    def failed(self, phase: str, name: str, error: BaseException) -> None:
        """Something could not be recorded: a line in dump_error_info.log, and training goes on."""
        path = self._error_log()
        logger.debug(f"{phase} failed for {name}: {error}")
        if path is None:
            return
        now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 8 * 3600))
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        stack = "".join(traceback.format_stack())
        mode, self._has_errors = ("a" if self._has_errors else "w"), True
        try:
            with Path(path).open(mode, encoding="utf-8") as log:
                log.write(f"[{now} +0800] [ERROR] {phase} failed: name={name}, pid={os.getpid()}\n{trace}")
                log.write(f"Call stack (most recent call last):\n{stack}\n")
        except OSError as unwritable:
            logger.warning(f"{path} cannot be written: {unwritable}")


def is_numpy_scalar(cls: type) -> bool:
    return any(base.__module__ == "numpy" and base.__name__ == "generic" for base in cls.__mro__)


def told_numpy_scalar(value: Any) -> dict[str, Any] | None:
    """A scalar of numpy, which calls bool in its second version what it called bool_ before, as dumps do."""
    name, item = type(value).__name__, value.item()
    # Complex numbers, dates and raw bytes have no form in JSON.
    is_plain = isinstance(item, (bool, int, float, str))
    return {"type": "bool_" if name == "bool" else name, "value": item} if is_plain else None


def plain_kind(cls: type) -> Kind | None:
    """How values of a class are encoded that belongs to no framework."""
    for base, kind in _FIRST:
        if issubclass(cls, base):
            return kind
    if is_numpy_scalar(cls):
        return Kind.RARE
    for base, kind in _PLAIN:
        if issubclass(cls, base):
            return kind
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return Kind.NAMED_TUPLE
    # Before dicts: outputs of models are often both, and all their fields are told, the empty ones too.
    if dataclasses.is_dataclass(cls):
        return Kind.DATACLASS
    if issubclass(cls, (list, tuple)):
        return Kind.SEQUENCE
    if issubclass(cls, dict):
        return Kind.MAPPING
    if cls.__module__ == "numpy" and cls.__name__ == "ndarray":
        return Kind.ARRAY
    return None


def told_slice(value: slice) -> dict[str, Any]:
    return {"type": "slice", "value": [_index(part) for part in (value.start, value.stop, value.step)]}


def _index(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        logger.warning(f"The data type {type(value)} cannot be converted to int type.")
        return None


def group_id(ranks: list[int]) -> str:
    return f"{binascii.crc32(str(ranks).encode()):08x}"
