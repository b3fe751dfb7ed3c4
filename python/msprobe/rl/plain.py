"""Configurations as JSON can hold them: what it has no word for becomes the text of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Deeper than any configuration; what is nested further, or inside itself, becomes text.
MAX_DEPTH = 100


def plain(value: object) -> Any:
    """A copy of ``value`` made of dicts, lists, strings, numbers, booleans and ``None``.

    Mappings become dicts and tuples lists. Everything else becomes ``str(value)``: a dtype, a path,
    a function, an object of the framework.
    """
    return _plain(value, set(), MAX_DEPTH)


def _plain(value: object, above: set[int], depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return _scalar(value)
    if isinstance(value, (Mapping, list, tuple)) and depth > 0 and id(value) not in above:
        inside = above | {id(value)}
        try:
            if isinstance(value, Mapping):
                return {_key(key): _plain(value[key], inside, depth - 1) for key in value}
            return [_plain(item, inside, depth - 1) for item in value]
        except Exception:
            # A mapping of the framework's that cannot be gone through, such as one with values still missing.
            return _text(value)
    return _text(value)


def _key(key: object) -> object:
    return _scalar(key) if key is None or isinstance(key, (bool, int, float, str)) else _text(key)


def _scalar(value: bool | int | float | str | None) -> object:
    """Members of an enumeration and the like count as the number or text they are."""
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def _text(value: object) -> str:
    try:
        return str.__str__(str(value))
    except Exception:
        return f"<{type(value).__name__}>"
