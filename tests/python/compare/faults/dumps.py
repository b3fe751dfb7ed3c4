"""Reads dumps with nothing but ``json``, and finds the records that an expected culprit may have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .faults import Expected

_API = re.compile(r"(?P<prefix>[^.]+)\.(?P<api>.+)\.(?P<n>\d+)\.(?P<direction>forward|backward)")
_MODULE = re.compile(r"Module\.(?P<path>.+)\.(?P<kind>[^.]+)\.(?P<direction>forward|backward)\.(?P<n>\d+)")


@dataclass(frozen=True)
class Dump:
    """One step of one rank."""

    data: dict[str, Any]
    parents: dict[str, str | None]


def read(directory: Path) -> Dump:
    data = json.loads((directory / "dump.json").read_text())["data"]
    for _, leaf in leaves(data):
        if isinstance(leaf, dict) and leaf.get("data_name"):
            leaf["file"] = directory / "dump_tensor_data" / leaf["data_name"]
    return Dump(data, json.loads((directory / "construct.json").read_text()))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Tensors and plain values of a record, with where they stand."""
    if isinstance(value, dict) and "type" not in value:
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}.{index}")
    else:
        yield path, value


def directory(root: Path, step: int = 0, rank: int | None = None) -> Path:
    return root / f"step{step}" / ("rank" if rank is None else f"rank{rank}")


def is_module(name: str) -> bool:
    return name.startswith("Module.")


def module_record(dump: Dump, path: str, direction: str = "forward") -> str | None:
    """The first call of the module at this path."""
    for name in dump.parents:
        match = _MODULE.fullmatch(name)
        if match and (match["path"], match["direction"], match["n"]) == (path, direction, "0"):
            return name
    return None


def api_record(dump: Dump, module: str | None, api: str) -> str | None:
    """The call of ``name`` or ``name:n`` right inside a forward module."""
    name, _, nth = api.partition(":")
    inside = [
        record
        for record, parent in dump.parents.items()
        if parent == module
        and (match := _API.fullmatch(record))
        and match["api"] == name
        and match["direction"] == "forward"
        and not is_module(record)
    ]
    inside.sort(key=lambda record: int(record.split(".")[-2]))
    index = int(nth or 0)
    return inside[index] if index < len(inside) else None


def names_of(expected: Expected, target: Dump, golden: Dump, task: str) -> list[str]:
    """Every record a comparison may name, the most exact first.

    Dumps of level mix are needed. Numbers of functions are those of the target; modules that are there on one
    side only count too.
    """
    if expected.where is None:
        return []
    found: list[str | None] = []
    forward = module_record(target, expected.where)
    for api in (expected.api, *expected.also):
        if api is not None:
            found.append(api_record(target, forward, api))
    if expected.api is None:
        found.insert(0, forward)
    for side in (target, golden):
        module = module_record(side, expected.where)
        found.append(module)
        # The wrapper of a function is its module; a module that is no more than its function has one itself.
        if module is not None and (expected.api is None or _only_call(side, module)):
            found.append(side.parents.get(module))
    if module_record(golden, expected.where) != forward and forward is not None:
        # Another module stands there, whose function is the injected one.
        found.extend(_only_call(target, forward))
    if expected.in_statistics is not None and task == "statistics":
        module = module_record(target, expected.in_statistics)
        found.extend([module, *(_only_call(target, module) if module is not None else [])])
    names = [name for name in dict.fromkeys(found) if name is not None]
    if expected.direction == "backward":
        names = [turned(name) for name in names]
        if expected.parameters_grad and forward is not None:
            names.append(forward.rsplit(".", 2)[0] + ".parameters_grad")
    return names


def _only_call(dump: Dump, module: str) -> list[str]:
    """The function that a module of a single call wraps, as ``Linear`` does."""
    inside = [name for name, parent in dump.parents.items() if parent == module]
    return inside if len(inside) == 1 and not is_module(inside[0]) else []


def turned(name: str) -> str:
    """The backward record of a forward one."""
    if is_module(name):
        return name.replace(".forward.", ".backward.")
    return name.removesuffix("forward") + "backward"
