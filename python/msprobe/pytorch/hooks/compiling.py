"""``torch.compile``: what is compiled is recorded from outside, and is compiled as it would be without us."""

from __future__ import annotations

import sys
import threading
from types import CodeType
from typing import Any, Callable

import torch

from msprobe import _native
from msprobe.core.collection.replacing import ByAttribute, Replacements
from msprobe.core.common.log import logger

# Around the graphs that were compiled ahead of time, in forward and backward.
_RUNTIME = ("torch/_functorch/_aot_autograd/", "torch/_inductor/")

_has_told = False


class _Running(threading.local):
    """What this thread is in the middle of."""

    window = 0
    is_compiled = False
    before: tuple[bool, ...] = ()


class Compilation:
    """Has compiled code, and the compiler, find all functions as they are without us.

    Whether a compiled function can be used again is decided by what it was made from, ``__code__`` of
    functions included. Nothing inside is recorded, so nothing is lost.
    """

    def __init__(self, collector: _native.Collector, replacements: Replacements) -> None:
        self._collector = collector
        self._replacements = replacements
        self._running = _Running()
        self._window = 0
        self._suspensions = 0
        self._switches: list[ByAttribute] = []
        self._handler: Any = None

    def install(self) -> None:
        """The compiler is imported by the first use of ``torch.compile``."""
        self._replacements.wrapped(torch.compile, "compile", self._noticing)
        self._watch_export()

    def set(self, is_open: bool) -> None:
        """A window opens or closes."""
        if is_open:
            self._window += 1
            self._watch()
            self._watch_export()
            return
        while self._switches:
            self._switches.pop().take_off()
        if self._handler is not None:
            _remove(self._handler.start_callbacks, self._begin)
            _remove(self._handler.end_callbacks, self._end)
            self._handler = None
        while self._suspensions:
            self._resume()

    def _watch_export(self) -> None:
        """A program that is exported is traced as it would be without us, and nothing of that is recorded."""
        export = getattr(sys.modules.get("torch.export"), "export", None)
        if export is not None:
            self._replacements.wrapped(export, "export", self._suspending)

    def _suspending(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def export(*args: Any, **kwargs: Any) -> Any:
            with self._replacements.suspended():
                return original(*args, **kwargs)

        return export

    def _noticing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._watch()
            return result

        return compile

    def _watch(self) -> None:
        compiler = sys.modules.get("torch._dynamo.eval_frame")
        original = getattr(compiler, "set_eval_frame", None)
        if original is None or self._switches:
            return
        self._collector.watch_compiled()
        switch = self._switching(original)
        # In some versions one is another name of the other.
        for name in ("set_eval_frame", "_maybe_set_eval_frame"):
            if getattr(compiler, name, None) is original:
                self._switches.append(ByAttribute(compiler, name, switch))
                self._switches[-1].put()
        self._handler = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
        if self._handler is not None:
            self._handler.start_callbacks.append(self._begin)
            self._handler.end_callbacks.append(self._end)

    def _switching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Called with what evaluates frames from now on in this thread: the compiler before compiled code
        runs, nothing after it and around code that is to run as it is."""

        def set_eval_frame(callback: Any) -> Any:
            before = original(callback)
            self._enter(callback is not None and callback is not False)
            return before

        return set_eval_frame

    def _enter(self, is_compiled: bool) -> None:
        running = self._running
        if running.window != self._window:
            running.window, running.is_compiled, running.before = self._window, False, ()
        if is_compiled != running.is_compiled:
            running.is_compiled = is_compiled
            if is_compiled:
                self._suspend()
            else:
                self._resume()

    def _begin(self, *_: Any) -> None:
        """The compiler sets what evaluates frames without telling, and runs code of all kinds."""
        self._enter(self._running.is_compiled and self._running.window == self._window)
        self._running.before += (self._running.is_compiled,)
        self._suspend()

    def _end(self, *_: Any) -> None:
        before = self._running.before
        if before and self._running.window == self._window:
            self._resume()
            self._running.before = before[:-1]
            self._enter(before[-1])

    def _suspend(self) -> None:
        self._suspensions += 1
        self._replacements.suspend()

    def _resume(self) -> None:
        if self._suspensions:
            self._suspensions -= 1
            self._replacements.resume()


def is_compiled_code(code: CodeType) -> bool:
    """Whether code is the way into what was compiled; the first time it is, that is said."""
    if not (code in _entries() or any(part in code.co_filename for part in _RUNTIME)):
        return False
    global _has_told
    if not _has_told:
        _has_told = True
        logger.info(
            "What runs inside of torch.compile is not recorded: compiled modules are, from outside, "
            "and so is all that is not compiled. To look inside, set TORCH_COMPILE_DISABLE=1."
        )
    return True


def _entries() -> set[CodeType]:
    """The functions that ``torch.compile`` returns."""
    context = getattr(sys.modules.get("torch._dynamo.eval_frame"), "_TorchDynamoContext", None)
    call = vars(context).get("__call__") if context is not None else None
    return set() if call is None else set(_nested(call.__code__))


def _nested(code: CodeType) -> list[CodeType]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return inner + [each for constant in inner for each in _nested(constant)]


def _remove(callbacks: list[Any], callback: Any) -> None:
    if callback in callbacks:
        callbacks.remove(callback)
