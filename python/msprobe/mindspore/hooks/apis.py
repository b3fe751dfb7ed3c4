"""Wrappers around MindSpore's functions, in place while a window is open.

Only the outermost wrapped call of a thread is recorded.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any, Callable, NamedTuple

import mindspore as ms
from mindspore import mint, ops
from mindspore.communication import comm_func

from msprobe import _native
from msprobe.core.collection.api_list import read_api_list
from msprobe.core.collection.replacing import Replacements
from msprobe.core.collection.window import Window
from msprobe.core.common.log import logger
from msprobe.mindspore.hooks.executor import sync
from msprobe.mindspore.hooks.gradients import Gradients

Function = Callable[..., Any]

API_LIST = Path(__file__).with_name("support_wrap_ops.yaml")

_HANDLES = ("isend", "irecv", "batch_isend_irecv")
"""Communication that goes on in the background whatever its arguments are."""


_WRITING = (
    "assign",
    "index_add",
    "inplace_",
    *(f"scatter_{kind}" for kind in ("add", "div", "max", "min", "mul", "nd_", "sub", "update")),
)
"""Beginnings of the names of functions of ``mindspore.ops`` that write into a parameter."""


class Section(NamedTuple):
    """Where the functions of one section are looked up and replaced."""

    name: str
    prefix: str
    targets: list[Any]


def sources() -> list[Section]:
    """The sections this version has."""
    sections = [
        Section("ops", "Functional", [ops]),
        Section("tensor", "Tensor", _tensor_classes()),
        Section("mint.ops", "Mint", [mint]),
        Section("mint.nn.functional", "MintFunctional", [mint.nn.functional]),
        Section("communication.comm_func", "Distributed", [comm_func]),
    ]
    distributed = sys.modules.get("mindspore.mint.distributed")
    if distributed is not None:
        sections.append(Section("mint.distributed", "MintDistributed", [distributed]))
    return sections


def _tensor_classes() -> list[Any]:
    stubs = sys.modules.get("mindspore.common._stub_tensor")
    stub = getattr(stubs, "StubTensor", None)
    return [ms.Tensor] if stub is None or stub is ms.Tensor else [ms.Tensor, stub]


class _Done:
    """Stands for communication that was waited for."""

    def wait(self) -> None: ...

    def is_completed(self) -> bool:
        return True


class ApiHooks:
    """All wrapped functions of a run."""

    def __init__(
        self,
        collector: _native.Collector,
        window: Window,
        replacements: Replacements,
        gradients: Gradients,
    ) -> None:
        self._collector = collector
        self._window = window
        self._replacements = replacements
        self._gradients = gradients
        self.use(sources, API_LIST)
        self._custom: dict[str, tuple[Any, str, Any]] = {}
        self._installed: set[str] = set()
        self._told: set[str] = set()

    def use(
        self, sections: Callable[[], list[Section]], api_list: Path, left_out: tuple[str, ...] = ()
    ) -> None:
        """Says where functions are, and which file lists them."""
        self._sections, self._api_list, self._left_out = sections, api_list, left_out

    def install(self) -> None:
        """Has every listed function wrapped while a window is open; again, what was imported since."""
        listed = None
        for section in self._sections():
            if section.name in self._installed:
                continue
            self._installed.add(section.name)
            listed = listed or read_api_list(self._api_list)
            for name in listed.get(section.name, []):
                if name not in self._left_out:
                    self._wrap(section, name)

    def _wrap(self, section: Section, path: str) -> None:
        name = path.rpartition(".")[2]
        for target in section.targets:
            owner = target
            for part in path.split(".")[:-1]:
                owner = getattr(owner, part, None)
            original = getattr(owner, name, None)
            if not callable(original):
                continue
            api = self._collector.add_api(f"{section.prefix}.{name}")
            if section.prefix in ("Distributed", "MintDistributed"):
                original = _waited(original, name)
            changes_arguments = _changes_arguments(section.prefix, name)
            wrapper = self._recording(
                original, api, name, section.prefix == "MintDistributed", changes_arguments
            )
            self._replacements.attribute(owner, name, look_alike(wrapper, original, name))

    def _recording(
        self,
        original: Function,
        api: int,
        name: str,
        has_output_arguments: bool = False,
        changes_arguments: bool = False,
        is_user_s: bool = False,
    ) -> Function:
        """A function that records its calls."""
        if name.startswith("dropout"):
            original = _without_dropping
        collector, window, gradients = self._collector, self._window, self._gradients
        begin, end, fail = collector.api_begin, collector.api_end, collector.api_fail
        inside, frame = window.inside, sys._getframe
        is_watched = not has_output_arguments and not changes_arguments

        def api_function(*args: Any, **kwargs: Any) -> Any:
            if not window.apis or inside.api:
                return original(*args, **kwargs)
            if "self" in kwargs:
                self._tell_unrecorded(name)
                return original(*args, **kwargs)
            if gradients.pending is not None:
                gradients.settle()
            inside.api = True
            call = None
            try:
                sync()
                call = begin(api, args, kwargs, frame())
                if call is None:
                    return original(*args, **kwargs)
                watch = gradients.of_api(call, args, is_user_s) if is_watched else None
                result = original(*(args if watch is None else watch.args), **kwargs)
                sync()
                if has_output_arguments:
                    collector.collective_end(call, args, kwargs, True)
                else:
                    end(call, args, kwargs, result)
                return result if watch is None else watch.leave(result)
            except BaseException:
                if call is not None:
                    fail(call)
                raise
            finally:
                inside.api = False

        return api_function

    def _tell_unrecorded(self, name: str) -> None:
        if name not in self._told:
            self._told.add(name)
            logger.warning(f"Calls of {name} that name the argument self are not recorded.")

    def register(self, owner: Any, name: str, prefix: str) -> None:
        """Wraps a function of the user's."""
        original = getattr(owner, name)
        as_it_lies = vars(owner).get(name, original) if hasattr(owner, "__dict__") else original
        api = self._collector.add_api(f"{prefix}.{name}")
        wrapper = look_alike(self._recording(original, api, name, is_user_s=True), original, name)
        is_static = isinstance(as_it_lies, (staticmethod, classmethod))
        setattr(owner, name, staticmethod(wrapper) if is_static else wrapper)
        self._custom[f"{owner}.{name}"] = (owner, name, as_it_lies)

    def unregister(self, owner: Any, name: str) -> None:
        """Takes the wrapper off again."""
        custom = self._custom.pop(f"{owner}.{name}", None)
        if custom is not None:
            setattr(*custom)


def look_alike(wrapper: Function, original: Function, name: str) -> Function:
    """Gives a wrapper the looks of what it wraps."""
    wrapper.__name__ = name
    for attribute in ("__doc__", "__module__", "__qualname__"):
        value = getattr(original, attribute, None)
        if isinstance(value, str):
            setattr(wrapper, attribute, value)
    wrapper.__dict__.update(getattr(original, "__dict__", {}))
    return wrapper


def _changes_arguments(prefix: str, name: str) -> bool:
    """Whether a function writes into what it is given, which then has to be the user's own tensor."""
    is_special = name.startswith("__") and name.endswith("__")
    if is_special:
        return name.startswith("__i") and name not in ("__invert__", "__index__", "__int__", "__init__")
    return name.endswith("_") or (prefix == "Functional" and name.startswith(_WRITING))


def _without_dropping(*args: Any, **kwargs: Any) -> Any:
    """Random zeros would make two runs differ: what goes in comes out."""
    return args[0] if args else kwargs.get("input")


def _waited(original: Function, name: str) -> Function:
    """Communication whose result is there when it returns."""
    try:
        signature: inspect.Signature | None = inspect.signature(original)
    except (TypeError, ValueError):
        signature = None

    def is_asynchronous(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if name in _HANDLES:
            return True
        if signature is None:
            return bool(kwargs.get("async_op"))
        try:
            return bool(signature.bind(*args, **kwargs).arguments.get("async_op"))
        except TypeError:
            return False

    def communication(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        return _finished(result) if is_asynchronous(args, kwargs) else result

    return look_alike(communication, original, name)


def _finished(result: Any) -> Any:
    if isinstance(result, list):
        return [_finished(each) for each in result]
    if isinstance(result, tuple):
        return tuple(_finished(each) for each in result)
    if hasattr(result, "wait"):
        try:
            result.wait()
        except Exception as error:
            logger.warning(f"Communication could not be waited for: {error}")
            return result
        return _Done()
    return result
