"""Operators that a model's cells hold as attributes: their objects get a class that records its calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from mindspore.ops import Primitive

from msprobe import _native
from msprobe.core.collection.window import Window
from msprobe.core.common.log import logger
from msprobe.mindspore.hooks.cells import descendants, is_compiled
from msprobe.mindspore.hooks.executor import sync
from msprobe.mindspore.hooks.gradients import Gradients


class PrimitiveHooks:
    """All operators of a run. Their calls are counted also while nothing is recorded."""

    def __init__(self, collector: _native.Collector, window: Window, gradients: Gradients) -> None:
        self._collector = collector
        self._window = window
        self._gradients = gradients
        self._classes: dict[tuple[type, str, bool], type] = {}
        self._hooked: dict[int, Any] = {}

    def install(self, models: list[Any]) -> None:
        for model in models:
            if is_compiled(model):
                continue
            for cell in (model, *(cell for _, cell in descendants(model))):
                for attribute, primitive in _primitives_of(cell):
                    self._hook(attribute, primitive)

    def _hook(self, attribute: str, primitive: Any) -> None:
        if id(primitive) in self._hooked:
            return
        cls = type(primitive)
        try:
            primitive.__class__ = self._recording_class(cls, attribute, _writes(primitive))
        except TypeError as error:
            logger.debug(f"The operator {attribute} of class {cls.__name__} is not recorded: {error}")
            return
        self._hooked[id(primitive)] = primitive

    def _recording_class(self, cls: type, attribute: str, writes: bool) -> type:
        known = self._classes.get((cls, attribute, writes))
        if known is not None:
            return known
        collector, window, gradients = self._collector, self._window, self._gradients
        begin, end, fail, skip = (
            collector.api_begin,
            collector.api_end,
            collector.api_fail,
            collector.api_skip,
        )
        inside, frame = window.inside, sys._getframe
        api = collector.add_api(f"Primitive.{attribute}.{cls.__name__}")
        run: Any = cls.__call__

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not window.apis or inside.api:
                skip(api)
                return run(self, *args, **kwargs)
            if gradients.pending is not None:
                gradients.settle()
            inside.api = True
            call = None
            try:
                sync()
                call = begin(api, args, kwargs, frame(1))
                if call is None:
                    return run(self, *args, **kwargs)
                watch = None if writes else gradients.of_primitive(call, args)
                result = run(self, *(args if watch is None else watch.args), **kwargs)
                sync()
                end(call, args, kwargs, result)
                return result if watch is None else watch.leave(result)
            except BaseException:
                if call is not None:
                    fail(call)
                raise
            finally:
                inside.api = False

        recording = type(cls.__name__, (cls,), {"__call__": __call__, "__module__": cls.__module__})
        self._classes[cls, attribute, writes] = recording
        return recording


def _writes(primitive: Any) -> bool:
    """Whether an operator writes into what it is given, which then has to be the user's own tensor."""
    return bool(primitive.attrs.get("side_effect_mem"))


def _primitives_of(cell: Any) -> Iterator[tuple[str, Any]]:
    found: dict[str, Any] = {}
    for attributes in (vars(cell), getattr(cell, "_primitives", None) or {}):
        for name, value in attributes.items():
            if isinstance(value, Primitive):
                found.setdefault(name, value)
    yield from found.items()
