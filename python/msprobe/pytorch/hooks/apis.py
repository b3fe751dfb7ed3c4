"""Wrappers around the framework's functions.

A wrapper stays in place for good, so that code which imported it by value is seen whenever a window is open;
closed, it costs one test. Only the outermost wrapped call of a thread is recorded.
"""

from __future__ import annotations

import functools
import operator
import sys
from types import ModuleType
from typing import Any, Callable, NamedTuple

import torch
import torch.distributed as dist

from msprobe import _native
from msprobe.core.common.log import logger
from msprobe.pytorch.hooks.api_list import read_api_list
from msprobe.pytorch.hooks.collectives import Waits
from msprobe.pytorch.hooks.scripting import Scripting, make_scriptable, without_our_hooks
from msprobe.pytorch.hooks.window import Window, is_compiling

Function = Callable[..., Any]


class Patch(NamedTuple):
    """One attribute that holds a wrapper instead of the original."""

    owner: Any
    name: str
    original: Function
    wrapper: Function


def api_wrapper(
    original: Function, name: str, api: int, collector: _native.Collector, window: Window, end: Function
) -> Function:
    """A function that records its calls under the number ``api``; ``end`` takes what it returned."""
    begin, fail = collector.api_begin, collector.api_fail
    inside = window.inside
    frame = sys._getframe

    def api_function(*args: Any, **kwargs: Any) -> Any:
        if not window.apis or is_compiling() or inside.api:
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

    return dressed(api_function, original, name)


def dressed(wrapper: Function, original: Function, name: str) -> Function:
    """Gives a wrapper the looks of what it wraps."""
    wrapper.__name__ = name
    for attribute in ("__doc__", "__module__", "__qualname__"):
        value = getattr(original, attribute, None)
        if isinstance(value, str):
            setattr(wrapper, attribute, value)
    wrapper.__dict__.update(getattr(original, "__dict__", {}))
    make_scriptable(wrapper, original)
    return wrapper


class ApiHooks:
    """All wrapped functions of a run."""

    def __init__(self, collector: _native.Collector, window: Window, waits: Waits) -> None:
        self._collector = collector
        self._window = window
        self._waits = waits
        self._patches: list[Patch] = []
        self._custom: dict[str, Patch] = {}
        self._scripting = Scripting(self._suspend, self._resume)
        self._is_removed = False

    def install(self) -> None:
        """Wraps every listed function the framework has."""
        if self._patches:
            return
        sections = read_api_list()
        for section in sources():
            for path in sections.get(section.name, []):
                self._wrap(section, path)
        self._patch_script()

    def _wrap(self, section: Section, path: str) -> None:
        parent, _, name = path.rpartition(".")
        try:
            source = operator.attrgetter(parent)(section.source) if parent else section.source
            original = getattr(source, name)
        except AttributeError:
            return
        api = self._collector.add_api(f"{section.prefix}.{name}")
        end = self._waits.end if section.name == "distributed" else self._collector.api_end
        wrapper = api_wrapper(original, name, api, self._collector, self._window, end)
        for target in section.targets:
            try:
                owner = operator.attrgetter(parent)(target) if parent else target
                current = getattr(owner, name)
            except AttributeError:
                continue
            self._put(Patch(owner, name, current, wrapper))

    def _put(self, patch: Patch) -> None:
        try:
            setattr(patch.owner, patch.name, patch.wrapper)
        except (AttributeError, TypeError):
            logger.debug(f"{patch.name} cannot be replaced and is not recorded.")
            return
        self._patches.append(patch)

    def _patch_script(self) -> None:
        """Scripting reads source code, so it has to find the originals."""
        original = torch.jit.script
        scripting = self._scripting

        @functools.wraps(original)
        def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
            with scripting, without_our_hooks(obj):
                return original(obj, *args, **kwargs)

        torch.jit.script = script

    def remove(self) -> None:
        """Puts the originals back, for good."""
        self._is_removed = True
        self._suspend()

    def _suspend(self) -> None:
        for patch in self._patches:
            if getattr(patch.owner, patch.name, None) is patch.wrapper:
                setattr(patch.owner, patch.name, patch.original)

    def _resume(self) -> None:
        if self._is_removed:
            return
        for patch in self._patches:
            if getattr(patch.owner, patch.name, None) is patch.original:
                setattr(patch.owner, patch.name, patch.wrapper)

    def register(self, owner: Any, name: str, prefix: str) -> None:
        """Wraps a function of the user's."""
        original = getattr(owner, name)
        api = self._collector.add_api(f"{prefix}.{name}")
        wrapper = api_wrapper(original, name, api, self._collector, self._window, self._collector.api_end)
        setattr(owner, name, wrapper)
        self._custom[f"{owner}.{name}"] = Patch(owner, name, original, wrapper)

    def unregister(self, owner: Any, name: str) -> None:
        """Takes the wrapper off again."""
        patch = self._custom.pop(f"{owner}.{name}", None)
        if patch is not None:
            setattr(patch.owner, patch.name, patch.original)


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
        sections.append(Section("torch_npu", "NPU", torch.ops.npu, [npu, torch.ops.npu]))
    mindspeed = _optional("mindspeed.ops")
    if npu is not None and mindspeed is not None:
        sections.append(Section("mindspeed", "MindSpeed", mindspeed, [mindspeed]))
    return sections


def _optional(name: str) -> ModuleType | None:
    """A package that is imported already; none is imported for the sake of being watched."""
    return sys.modules.get(name)
