"""The gradients of what goes into a call and of what comes out of it.

MindSpore has no graph of gradients that could be asked, and a hook of a tensor is told the sum over all that
use it. So the tensors of a recorded call pass through an operator that changes nothing (``CellBackwardHook``,
which cells with backward hooks use as well) on their way in and out, while gradients are computed at all.
"""

from __future__ import annotations

import inspect
import itertools
from collections import OrderedDict
from typing import Any, Callable

import mindspore as ms
from mindspore.ops.operations import _inner_ops

from msprobe import _native
from msprobe.core.collection.window import Window
from msprobe.mindspore.hooks.executor import executor, sync

try:
    from mindspore._c_expression import HookType
except ImportError:
    HookType = None

Failed = Callable[[str, str, BaseException], None]

_Hook: Any = _inner_ops.CellBackwardHook
# Newer versions take all tensors as one argument.
_TAKES_TUPLE = list(inspect.signature(_Hook.__call__).parameters) == ["self", "args"]
# A dtype is one object for the whole process, and comparing two of them takes long.
_INTEGERS = frozenset(
    id(getattr(ms, name))
    for name in ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
)
_NOTHING: OrderedDict[int, Any] = OrderedDict()
_PHASE = "backward_data_collect"
_numbers = itertools.count()


class Watch:
    """One call of a function or a cell. ``args`` are its arguments as it is to be given them.

    ``told`` gets the gradients of outputs, and none, when they are known; then again with those of inputs.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        told: Callable[[Any, Any], None],
        stays: Callable[[Any], bool],
    ) -> None:
        self._told = told
        self._outputs: Any = None
        self._is_off = False
        # MindSpore knows by it which calls belong together.
        self._id = f"msprobe{next(_numbers)}"
        self._operator = _Hook(self._id, None, _NOTHING)
        if _takes_gradients(args, stays):
            self._operator.set_hook_fn(self._both, HookType.BackwardHook)
            self.args = _through(self._operator, args, stays)
        else:
            self._operator.set_hook_fn(self._outputs_only, HookType.BackwardPreHook)
            self.args = args

    def leave(self, result: Any) -> Any:
        """The result as the caller is to get it."""
        left = _result_through(self._operator, result)
        if left is result:
            # No gradient of it can arrive, and those of inputs would be taken for it.
            self.cancel()
        return left

    def cancel(self) -> None:
        """Nothing is told any more."""
        self._is_off = True

    def _both(self, gradients: Any) -> Any:
        if self._is_off:
            return gradients
        if self._outputs is None:
            self._outputs = gradients
            self._told(gradients, None)
            # Says that this was the first of two calls.
            return self._id
        self._told(self._outputs, gradients)
        self._outputs = None
        return gradients

    def _outputs_only(self, gradients: Any) -> Any:
        self._told(gradients, ())
        return gradients


class Arrivals:
    """One call of an operator. Its tensors are watched one by one, so that none has a gradient that would not
    have one; gradients stand in the order in which they arrive."""

    def __init__(self, gradients: Gradients, record: _native.ApiBackward, args: tuple[Any, ...]) -> None:
        self._gradients = gradients
        self._record = record
        self._outputs: list[Any] = []
        self._inputs: list[Any] = []
        self._expected = 0
        self.args = tuple(self._watched(arg) for arg in args)

    def _watched(self, value: Any) -> Any:
        if not isinstance(value, ms.Tensor) or id(value.dtype) in _INTEGERS or _is_fixed(value):
            return value
        self._expected += 1
        return _through(_operator(self._input), (value,))[0]

    def leave(self, result: Any) -> Any:
        """The result as the caller is to get it."""
        if not isinstance(result, tuple):
            return _result_through(_operator(self._output), result)
        if any(isinstance(value, ms.Tensor) for value in result):
            return tuple(_result_through(_operator(self._output), value) for value in result)
        return result

    def _output(self, gradients: Any) -> Any:
        self._gradients.turn_to(self)
        self._outputs += [gradient for gradient in _listed(gradients) if gradient is not None]
        return gradients

    def _input(self, gradients: Any) -> Any:
        self._gradients.turn_to(self)
        self._inputs += [gradient for gradient in _listed(gradients) if gradient is not None]
        if len(self._inputs) == self._expected:
            self._gradients.settle()
        return gradients

    def write(self) -> None:
        inputs, outputs, self._inputs, self._outputs = self._inputs, self._outputs, [], []
        self._record(tuple(inputs), tuple(outputs))


class Gradients:
    """Watches calls while gradients are computed."""

    def __init__(self, collector: _native.Collector, window: Window, failed: Failed) -> None:
        self._collector = collector
        self._inside = window.inside
        self._failed = failed
        self.pending: Arrivals | None = None
        """An operator some of whose gradients are there. Nobody says whether more will come, until something
        else is told of: then its record is written."""

    def of_api(self, call: _native.ApiCall, args: tuple[Any, ...], is_user_s: bool = False) -> Watch | None:
        """Watches a function. Nothing is told of one whose result has no gradient."""
        if not executor.requires_grad():
            return None
        record = self._collector.api_backward(call)

        def told(outputs: Any, inputs: Any) -> None:
            if inputs is not None:
                record(_listed(inputs), _listed(outputs))

        return self._watch(args, told, _is_parameter if is_user_s else _is_fixed)

    def of_primitive(self, call: _native.ApiCall, args: tuple[Any, ...]) -> Arrivals | None:
        """Watches an operator."""
        if not executor.requires_grad():
            return None
        try:
            return Arrivals(self, self._collector.api_backward(call), args)
        except Exception as error:
            self._failed(_PHASE, "gradient", error)
            return None

    def of_cell(
        self, modules: _native.Modules, call: _native.ModuleCall, args: tuple[Any, ...]
    ) -> Watch | None:
        """Watches a cell."""
        if not executor.requires_grad():
            return None
        count = sum(isinstance(arg, ms.Tensor) for arg in args)
        has_inputs = _takes_gradients(args, _is_parameter)

        def told(outputs: Any, inputs: Any) -> None:
            if inputs is None or not has_inputs:
                given = _listed(outputs)
                modules.backward_begin(call, len(given), count if has_inputs else 0)
                for position, gradient in enumerate(given):
                    if gradient is not None:
                        modules.backward_gradient(call, True, position, gradient)
            if inputs is not None:
                for position, gradient in enumerate(_listed(inputs)):
                    if gradient is not None:
                        modules.backward_gradient(call, False, position, gradient)
                modules.backward_end(call)

        return self._watch(args, told, _is_parameter)

    def _watch(
        self, args: tuple[Any, ...], told: Callable[[Any, Any], None], stays: Callable[[Any], bool]
    ) -> Watch | None:
        inside, failed = self._inside, self._failed

        def guarded(outputs: Any, inputs: Any) -> None:
            sync()
            if self.pending is not None:
                self.settle()
            before, inside.api = inside.api, True
            try:
                told(outputs, inputs)
            except Exception as error:
                failed(_PHASE, "gradient", error)
            finally:
                inside.api = before

        try:
            return Watch(args, guarded, stays)
        except Exception as error:
            failed(_PHASE, "gradient", error)
            return None

    def turn_to(self, arrivals: Arrivals) -> None:
        """A gradient of this operator arrives: others have got all of theirs."""
        if self.pending is not arrivals:
            if self.pending is not None:
                self.settle()
            self.pending = arrivals

    def settle(self) -> None:
        """Writes the record of the operator that is waiting."""
        pending, self.pending = self.pending, None
        if pending is None:
            return
        before, self._inside.api = self._inside.api, True
        try:
            pending.write()
        except Exception as error:
            self._failed(_PHASE, "gradient", error)
        finally:
            self._inside.api = before


def _operator(hook: Callable[[Any], Any]) -> Any:
    """An operator that changes nothing and has ``hook`` told the gradients of what passes through it."""
    operator = _Hook("msprobe", None, _NOTHING)
    operator.set_hook_fn(hook, HookType.BackwardPreHook)
    return operator


def _through(
    operator: Any, values: tuple[Any, ...], stays: Callable[[Any], bool] | None = None
) -> tuple[Any, ...]:
    kept = values if stays is None else tuple(None if stays(value) else value for value in values)
    passed = operator(kept) if _TAKES_TUPLE else operator(*kept)
    passed = passed if isinstance(passed, tuple) else (passed,)
    return tuple(value if through is None else through for value, through in zip(values, passed))


def _result_through(operator: Any, result: Any) -> Any:
    if isinstance(result, ms.Tensor):
        return result if _is_parameter(result) else _through(operator, (result,))[0]
    if not isinstance(result, tuple) or not any(isinstance(value, ms.Tensor) for value in result):
        return result
    passed = _through(operator, tuple(result), _is_parameter)
    # A named tuple stays one.
    return passed if type(result) is tuple else type(result)(*passed)


def _is_parameter(value: Any) -> bool:
    """What passes through an operator is a tensor and no parameter any more. The user's code may ask for its
    name or write to it, so it is given the parameter itself."""
    return isinstance(value, ms.Parameter)


def _is_fixed(value: Any) -> bool:
    """A parameter that is not trained may be there to be written to."""
    return isinstance(value, ms.Parameter) and not value.requires_grad


def _takes_gradients(args: tuple[Any, ...], stays: Callable[[Any], bool]) -> bool:
    return any(
        isinstance(arg, ms.Tensor) and id(arg.dtype) not in _INTEGERS and not stays(arg) for arg in args
    )


def _listed(gradients: Any) -> tuple[Any, ...]:
    return tuple(gradients) if isinstance(gradients, (tuple, list)) else (gradients,)
