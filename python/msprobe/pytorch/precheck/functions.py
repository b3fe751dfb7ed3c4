"""The function behind a recorded name. The list of names is read once; nothing is wrapped."""

from __future__ import annotations

import importlib
import operator
from functools import lru_cache
from types import ModuleType
from typing import Any, Callable

import torch

from msprobe.core.collection.api_list import read_api_list
from msprobe.pytorch.hooks.apis import API_LIST
from msprobe.pytorch.precheck.fused import FUSED

Function = Callable[..., Any]

_SECTIONS = {"Functional": "functional", "Tensor": "tensor", "Torch": "torch"}
KINDS = ("Functional", "Tensor", "Torch", "NPU")
"""Types of APIs that are run; the others that a dump knows give no output."""


@lru_cache(maxsize=1)
def _listed() -> dict[str, dict[str, str]]:
    """Paths of the wrapped functions by section and recorded name."""
    found: dict[str, dict[str, str]] = {}
    for section, paths in read_api_list(API_LIST).items():
        names = found.setdefault(section, {})
        # Of ``norm`` and ``linalg.norm``, which are recorded under one name, the plain one.
        for path in sorted(paths, key=lambda path: path.count(".")):
            names.setdefault(path, path)
            names.setdefault(path.rpartition(".")[2], path)
    return found


def known_names() -> set[str]:
    """Names that black and white lists may have."""
    listed = _listed()
    return {
        name for section in (*_SECTIONS.values(), "torch_npu") for name in listed.get(section, {}).values()
    } | {name for section in (*_SECTIONS.values(), "torch_npu") for name in listed.get(section, {})}


def _owner(kind: str) -> Any:
    return {"Functional": torch.nn.functional, "Tensor": torch.Tensor, "Torch": torch}[kind]


def find_function(kind: str, name: str) -> Function | None:
    """The function of the CPU and of each device without one of its own; None if it is not known."""
    if kind == "NPU":
        if name not in FUSED:
            raise ValueError(f"There is not bench function {name}")
        return FUSED[name]
    path = _listed().get(_SECTIONS[kind], {}).get(name)
    if path is None:
        return None
    try:
        return operator.attrgetter(path)(_owner(kind))  # type: ignore[no-any-return]
    except AttributeError:
        return None


def find_device_function(kind: str, name: str, device_type: str) -> Function | None:
    """The function that is tested."""
    bench = find_function(kind, name)
    if kind != "NPU" or device_type != "npu":
        return bench
    package: ModuleType = importlib.import_module("torch_npu")
    return getattr(package, name, None) or getattr(torch.ops.npu, name)  # type: ignore[no-any-return]
