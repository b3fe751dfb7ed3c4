"""Wrappers around the framework's functions.

They are in place while a window is open (see ``replacing``). Only the outermost wrapped call of a thread is
recorded.
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Callable, NamedTuple

import torch
import torch.distributed as dist

from msprobe import _native
from msprobe.core.collection.api_list import read_api_list
from msprobe.core.collection.replacing import Replacements
from msprobe.core.collection.window import Window
from msprobe.pytorch.hooks.collectives import Waits
from msprobe.pytorch.hooks.modules import encodable
from msprobe.pytorch.hooks.scripting import make_scriptable
from msprobe.pytorch.hooks.window import fake_mode, is_compiling

Function = Callable[..., Any]

API_LIST = Path(__file__).with_name("support_wrap_ops.yaml")

_BY_NAME = {
    # ``1 / x`` runs the same function under another name; what it computes inside is recorded.
    ("tensor", "__rdiv__"),
    # torch.nn's recurrent layers call the same builtins as ``torch._VF``, of which only lstm is recorded.
    ("torch", "gru"),
    ("torch", "gru_cell"),
    ("torch", "lstm"),
    ("torch", "lstm_cell"),
    ("_VF", "lstm"),
}
"""Functions that are recorded under the name they are called by, and not whoever else calls them."""

_has_override: Callable[[tuple[Any, ...]], bool] = torch._C._has_torch_function


def _takes_fake(args: tuple[Any, ...]) -> bool:
    """Whether a call is about a tensor without elements, with which torch works out shapes."""
    return bool(args) and type(args[0]).__name__ == "FakeTensor"


def api_wrapper(
    original: Function, api: int, collector: _native.Collector, window: Window, end: Function
) -> Function:
    """A function that records its calls under the number ``api``; ``end`` takes what it returned."""
    begin, fail = collector.api_begin, collector.api_fail
    inside = window.inside
    frame = sys._getframe

    def api_function(*args: Any, **kwargs: Any) -> Any:
        if not window.apis or is_compiling() or inside.api or fake_mode() is not None or _takes_fake(args):
            return original(*args, **kwargs)
        inside.api = True
        call = None
        try:
            call = begin(api, args, kwargs, frame())
            result = original(*args, **kwargs)
            if call is not None:
                end(call, args, kwargs, result)
            return result
        except BaseException:
            if call is not None:
                fail(call)
            raise
        finally:
            inside.api = False

    return api_function


def look_alike(wrapper: Function, original: Function, name: str) -> Function:
    """Gives a wrapper the looks of what it wraps."""
    wrapper.__name__ = name
    for attribute in ("__doc__", "__module__", "__qualname__"):
        value = getattr(original, attribute, None)
        if isinstance(value, str):
            setattr(wrapper, attribute, value)
    wrapper.__dict__.update(getattr(original, "__dict__", {}))
    make_scriptable(wrapper, original)
    return wrapper


class Listed(NamedTuple):
    """A function of the list in one of the places where it can be called."""

    section: Section
    owner: Any
    name: str
    function: Any
    api: int


class Custom(NamedTuple):
    """A function of the user's and its wrapper."""

    owner: Any
    name: str
    original: Function


class ApiHooks:
    """All wrapped functions of a run."""

    def __init__(
        self, collector: _native.Collector, window: Window, waits: Waits, replacements: Replacements
    ) -> None:
        self._collector = collector
        self._window = window
        self._waits = waits
        self._replacements = replacements
        self._custom: dict[str, Custom] = {}
        self._installed: set[str] = set()

    def install(self) -> None:
        """Has every listed function the framework has wrapped while a window is open.

        Again, it takes what was imported since: an extension may come after the debugger.
        """
        new = [section for section in sources() if section.name not in self._installed]
        if not new:
            return
        self._installed.update(section.name for section in new)
        sections = read_api_list(API_LIST)
        listed = [
            found
            for section in new
            for path in sections.get(section.name, [])
            for found in self._find(section, path)
        ]
        names = Counter(function for function, _ in {(id(each.function), each.api) for each in listed})
        # Of several names, that of the function itself is for whoever holds it: ``neg``, not ``__neg__``.
        for each in sorted(listed, key=lambda each: each.name != getattr(each.function, "__name__", None)):
            self._wrap(each, names[id(each.function)] > 1)

    def _find(self, section: Section, path: str) -> list[Listed]:
        parent, _, name = path.rpartition(".")

        def owner_in(target: Any) -> Any:
            owner = operator.attrgetter(parent)(target) if parent else target
            return owner if hasattr(owner, name) else None

        try:
            if owner_in(section.source) is None:
                return []
            owners = [owner_in(target) for target in section.targets]
        except AttributeError:
            return []
        api = self._collector.add_api(f"{section.prefix}.{name}")
        return [
            Listed(section, owner, name, getattr(owner, name), api) for owner in owners if owner is not None
        ]

    def _wrap(self, listed: Listed, has_other_names: bool) -> None:
        section, owner, name, function, api = listed
        replacements = self._replacements
        end = self._waits.end if section.name == "distributed" else self._collector.api_end

        def wrapped(original: Function) -> Function:
            if has_other_names or by_name:
                original = _showing_originals(original, replacements)
            return api_wrapper(original, api, self._collector, self._window, end)

        by_name = (section.name, name) in _BY_NAME
        if not by_name and replacements.wrapped(function, api, wrapped):
            return
        by_name = True
        original = replacements.original(function)
        wrapper = look_alike(wrapped(original), function, name)
        if not isinstance(function, FunctionType):
            # A builtin: where it stands is all that a pickle can say of its wrapper.
            wrapper.__module__, wrapper.__qualname__ = _address(owner, name)
        replacements.attribute(owner, name, wrapper)

    def register(self, owner: Any, name: str, prefix: str) -> None:
        """Wraps a function of the user's."""
        original = getattr(owner, name)
        api = self._collector.add_api(encodable(f"{prefix}.{name}"))
        wrapper = api_wrapper(original, api, self._collector, self._window, self._collector.api_end)
        setattr(owner, name, look_alike(wrapper, original, name))
        self._custom[f"{owner}.{name}"] = Custom(owner, name, original)

    def unregister(self, owner: Any, name: str) -> None:
        """Takes the wrapper off again."""
        custom = self._custom.pop(f"{owner}.{name}", None)
        if custom is not None:
            setattr(custom.owner, custom.name, custom.original)


def _address(owner: Any, name: str) -> tuple[str, str]:
    if isinstance(owner, type):
        return owner.__module__, f"{owner.__qualname__}.{name}"
    return getattr(owner, "__name__", type(owner).__module__), name


def _showing_originals(original: Function, replacements: Replacements) -> Function:
    """For a function that is also an attribute we replace: ``__torch_function__`` of a subclass may compare
    the function it is given with that attribute, and has to find the original there."""

    def shown(*args: Any, **kwargs: Any) -> Any:
        if _has_override(args) or (kwargs and _has_override(tuple(kwargs.values()))):
            with replacements.with_own_attributes():
                return original(*args, **kwargs)
        return original(*args, **kwargs)

    return shown


class Section(NamedTuple):
    """Where the functions of one section come from and where they are replaced."""

    name: str
    prefix: str
    source: Any
    targets: list[Any]


def sources() -> list[Section]:
    """The sections this installation has."""
    sections = [
        Section("functional", "Functional", torch.nn.functional, [torch.nn.functional]),
        Section("tensor", "Tensor", torch.Tensor, [torch.Tensor]),
        Section("torch", "Torch", torch, [torch]),
        Section("_VF", "VF", torch._C._VariableFunctionsClass, [torch._VF]),
    ]
    if dist.is_available():
        sections.append(Section("distributed", "Distributed", dist, [dist, dist.distributed_c10d]))
    npu = _optional("torch_npu")
    if npu is not None:
        # Each by itself: some functions are operators, some exist only in the package, and where both have
        # one the package's may do more than call the operator.
        sections.append(Section("torch_npu", "NPU", npu, [npu]))
        sections.append(Section("torch_npu", "NPU", torch.ops.npu, [torch.ops.npu]))
    mindspeed = _optional("mindspeed.ops")
    if npu is not None and mindspeed is not None:
        sections.append(Section("mindspeed", "MindSpeed", mindspeed, [mindspeed]))
    return sections


def _optional(name: str) -> ModuleType | None:
    """A package that is imported already; none is imported for the sake of being watched."""
    return sys.modules.get(name)
