"""What needs no framework. ``SingleSave`` and ``SingleComparator`` are loaded when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msprobe.core.single_save.single_comparator import SingleComparator
    from msprobe.core.single_save.single_saver import SingleSave

__all__ = ["SingleComparator", "SingleSave"]

_HOMES = {
    "SingleComparator": "msprobe.core.single_save.single_comparator",
    "SingleSave": "msprobe.core.single_save.single_saver",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
