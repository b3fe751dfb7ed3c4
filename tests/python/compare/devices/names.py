"""The records a comparison may name for a fault: where it was put, or the innermost one around it."""

from __future__ import annotations

from collections.abc import Sequence

from ..faults import dumps
from ..faults.dumps import Dump
from .cases import Expected


def accepted(expected: Expected, sides: Sequence[Dump], level: str, task: str) -> list[str]:
    """Names at a level, the most exact first; dumps are of level mix, the target's first."""
    found: list[str] = []
    for side in sides:
        found.extend(_names(expected, side, task))
    names = [name for name in dict.fromkeys(found) if level == "mix" or dumps.is_module(name)]
    assert names, f"no record of level {level} can show a fault in {expected.where}"
    return names


def _names(expected: Expected, dump: Dump, task: str) -> list[str]:
    module = _record(dump, expected.where, expected.call)
    if module is None:
        return []
    names: list[str] = []
    place = module
    if expected.api is not None:
        api = dumps.api_record(dump, module, expected.api)
        if api is not None:
            place = api
            names.append(api)
    names.append(module)
    parent = dump.parents.get(module)
    # A wrapper of a single function is no more than it; around a module there is the next one.
    if parent is not None and (expected.api is None or len(_inside(dump, module)) <= 1):
        names.append(parent)
    if expected.is_inside:
        names.extend(_within(dump, module))
    if expected.is_permuted and task == "statistics":
        names.extend(_next_uses(dump, place))
    if expected.direction == "backward":
        names = [dumps.turned(name) for name in names]
        if expected.parameters_grad:
            names.insert(0, f"{module.rsplit('.', 2)[0]}.parameters_grad")
    return names


def _record(dump: Dump, path: str, call: int) -> str | None:
    for name in dump.parents:
        if name.startswith(f"Module.{path}.") and name.endswith(f".forward.{call}"):
            kind = name.removeprefix(f"Module.{path}.").removesuffix(f".forward.{call}")
            if "." not in kind:
                return name
    return None


def _inside(dump: Dump, module: str | None) -> list[str]:
    return [name for name, parent in dump.parents.items() if parent == module and _is_forward(name)]


def _is_forward(name: str) -> bool:
    return ".forward." in name or name.endswith(".forward")


def _within(dump: Dump, module: str) -> list[str]:
    """Everything inside, at any depth."""
    found: list[str] = []
    for name in _inside(dump, module):
        found.append(name)
        if dumps.is_module(name):
            found.extend(_within(dump, name))
    return found


def _changes_nothing(module: str) -> bool:
    return ".Dropout." in module or ".Identity." in module


def _next_uses(dump: Dump, place: str) -> list[str]:
    """What comes after a record up to the next module, in the modules around it, and those modules."""
    order = {name: index for index, name in enumerate(dump.data)}
    found: list[str] = []
    while True:
        parent = dump.parents.get(place)
        if parent is None:
            return found
        found.append(parent)
        start = order.get(place, len(order))
        later = [name for name in _inside(dump, parent) if order.get(name, -1) > start]
        for name in sorted(later, key=lambda name: order[name]):
            found.append(name)
            if dumps.is_module(name) and not _changes_nothing(name):
                return [*found, *_within(dump, name)]
        place = parent
