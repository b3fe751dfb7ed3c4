"""Functions of the framework that are called through wrappers while a window is open, and only then.

A function that is compared with ``is``, looked up in a table or was imported by value has to stay the object
it is, and whoever calls it has to be seen. So the object stays and what it runs changes: a builtin is given
another definition (``_native.Intercepted``), a Python function another ``__code__``. What can be replaced in
neither way, or is one object under two names that are told apart, is replaced as an attribute of its owner.
"""

from __future__ import annotations

import contextlib
import threading
import types
from collections.abc import Iterator
from typing import Any, Callable, Protocol

from msprobe import _native
from msprobe.core.common.log import logger

Function = Callable[..., Any]
_MISSING = object()


class Replacement(Protocol):
    """One function, called through a wrapper or not."""

    def put(self) -> None: ...
    def take_off(self) -> None: ...


class ByAttribute:
    """An attribute that holds a wrapper. If it was inherited, it is again afterwards."""

    def __init__(self, owner: Any, name: str, wrapper: Function) -> None:
        self._owner = owner
        self._name = name
        self._wrapper = wrapper
        self._before: Any = _MISSING
        self._is_put = False

    def put(self) -> None:
        if self._is_put:
            return
        # As it lies there: what getattr returns may be bound, or somebody else's.
        before = getattr(self._owner, "__dict__", {}).get(self._name, _MISSING)
        try:
            setattr(self._owner, self._name, self._wrapper)
        except (AttributeError, TypeError):
            logger.debug(f"{self._name} cannot be replaced and is not recorded.")
            return
        self._before, self._is_put = before, True

    def take_off(self) -> None:
        if not self._is_put:
            return
        self._is_put = False
        if getattr(self._owner, self._name, None) is not self._wrapper:
            # Somebody else has replaced it since, and calls us or not.
            return
        if self._before is _MISSING:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._before)


class ByCode:
    """A Python function that runs other code: it calls a wrapper, which calls a copy of it as it was."""

    def __init__(self, function: types.FunctionType, wrap: Callable[[Function], Function]) -> None:
        self._function = function
        self._theirs = function.__code__
        self.original = _copy(function)
        self.wrapper = wrap(self.original)
        self._ours = _calling(self.wrapper, self._theirs)
        self._shows_original = False

    def put(self) -> None:
        function = self._function
        if function.__code__ is not self._theirs:
            return
        function.__code__ = self._ours
        if "__wrapped__" not in function.__dict__:
            # What asks for the signature or the source is led to them.
            function.__dict__["__wrapped__"] = self.original
            self._shows_original = True

    def take_off(self) -> None:
        function = self._function
        if function.__code__ is self._ours:
            function.__code__ = self._theirs
        if self._shows_original:
            self._shows_original = False
            if function.__dict__.get("__wrapped__") is self.original:
                del function.__dict__["__wrapped__"]


class Replacements:
    """All replaced functions of a run."""

    def __init__(self) -> None:
        self._builtins: list[_native.Intercepted] = []
        self._others: list[Replacement] = []
        self._attributes: list[ByAttribute] = []
        self._known: dict[int, tuple[Any, Function, Any]] = {}
        self._lock = threading.RLock()
        self._is_open = False
        self._suspended = 0

    def wrapped(self, function: Any, key: Any, wrap: Callable[[Function], Function]) -> bool:
        """Has all calls of a function object go to ``wrap(original)``, if it can; ``key`` says what for."""
        if id(function) in self._known:
            return bool(self._known[id(function)][2] == key)
        with self._lock:
            if type(function) is types.FunctionType:
                by_code = ByCode(function, wrap)
                self._known[id(function)] = (function, by_code.original, key)
                self._add(self._others, by_code)
                return True
            builtin = intercepted(function)
            if builtin is None:
                return False
            self._known[id(function)] = (function, builtin.original, key)
            builtin.wrap(wrap(builtin.original))
            self._builtins.append(builtin)
            if self._is_open and not self._suspended:
                builtin.set(True)
            return True

    def original(self, function: Any) -> Function:
        """A function whose calls are not replaced, for one that may be."""
        known = self._known.get(id(function))
        original: Function = function if known is None else known[1]
        return original

    def attribute(self, owner: Any, name: str, wrapper: Function) -> None:
        """Has an attribute hold a wrapper."""
        with self._lock:
            self._add(self._attributes, ByAttribute(owner, name, wrapper))

    def _add(self, kind: list[Any], replacement: Replacement) -> None:
        kind.append(replacement)
        if self._is_open and not self._suspended:
            replacement.put()

    def open(self) -> None:
        with self._lock:
            if not self._is_open:
                self._is_open = True
                if not self._suspended:
                    self._put()

    def close(self) -> None:
        with self._lock:
            if self._is_open:
                self._is_open = False
                if not self._suspended:
                    self._take_off()

    def suspend(self) -> None:
        """Everything is as without us until ``resume``, which has to be called as often."""
        with self._lock:
            self._suspended += 1
            if self._suspended == 1 and self._is_open:
                self._take_off()

    def resume(self) -> None:
        with self._lock:
            if self._suspended == 0:
                return
            self._suspended -= 1
            if self._suspended == 0 and self._is_open:
                self._put()

    def after_fork(self) -> None:
        """In a forked child there are no other threads, and nobody who gives the lock back."""
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        self.suspend()
        try:
            yield
        finally:
            self.resume()

    @contextlib.contextmanager
    def with_own_attributes(self) -> Iterator[None]:
        """Attributes hold what they hold without us: code inside may compare them with a function it has."""
        with self._lock:
            hidden = self._attributes if self._is_open and not self._suspended else []
            for replacement in reversed(hidden):
                replacement.take_off()
        try:
            yield
        finally:
            with self._lock:
                if self._is_open and not self._suspended:
                    for replacement in hidden:
                        replacement.put()

    def _put(self) -> None:
        _native.set_intercepted(self._builtins, True)
        for replacement in self._others:
            replacement.put()
        for attribute in self._attributes:
            attribute.put()

    def _take_off(self) -> None:
        for attribute in reversed(self._attributes):
            attribute.take_off()
        for replacement in self._others:
            replacement.take_off()
        _native.set_intercepted(self._builtins, False)


_all_intercepted: dict[int, _native.Intercepted] = {}
"""By the address of the function, which lives as long as this: an object is intercepted by one of them."""


def intercepted(function: Any) -> _native.Intercepted | None:
    known = _all_intercepted.get(id(function))
    if known is not None:
        return known
    try:
        made = _native.Intercepted(function)
    except (TypeError, MemoryError) as error:
        logger.debug(f"{function} is replaced where it stands: {error}.")
        return None
    _all_intercepted[id(function)] = made
    return made


def bare(function: Any) -> Any:
    """The same builtin as an object of its own: calls for the tool's own sake are nobody's."""
    found = intercepted(function)
    return function if found is None else found.original


def _copy(function: types.FunctionType) -> types.FunctionType:
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    for attribute in ("__doc__", "__module__", "__qualname__", "__annotations__"):
        setattr(copy, attribute, getattr(function, attribute))
    return copy


_PLACE = 0x6D_73_70_72_6F_62_65


def _calling(wrapper: Function, theirs: types.CodeType) -> types.CodeType:
    """Code that calls a wrapper, for a function that has other code. The wrapper is one of its constants: the
    function goes on with the globals and the closure it has."""
    names = theirs.co_freevars
    uses = f"({', '.join(names)},)" if names else "()"
    source = (
        f"def around({', '.join(names)}):\n"
        " def entry(*args, **kwargs):\n"
        f"  if 0: {uses}\n"
        f"  call = {_PLACE}\n"
        "  return call(*args, **kwargs)\n"
        " return entry\n"
    )
    module = compile(source, __file__, "exec", dont_inherit=True)
    around = next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))
    entry = next(constant for constant in around.co_consts if isinstance(constant, types.CodeType))
    constants = tuple(
        wrapper if type(constant) is int and constant == _PLACE else constant for constant in entry.co_consts
    )
    return entry.replace(co_consts=constants, co_name=theirs.co_name)
