"""One API run on both sides: on the device as it was recorded, on the CPU in a raised precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Callable, NamedTuple

import torch

from msprobe.core.tensor import describe
from msprobe.pytorch.precheck import repeatable
from msprobe.pytorch.precheck.functions import KINDS, find_device_function, find_function
from msprobe.pytorch.precheck.inputs import Device, InputMaker, Inputs
from msprobe.pytorch.precheck.precision import Precision, plan_precision
from msprobe.pytorch.precheck.tree import leaves, map_tensors, tensors

SEVERAL_OUTPUTS = "Multiple backward is not supported."
_FIRST_OUTPUT_COUNTS = {"topk", "npu_fusion_attention"}
_ONE_OUTPUT_COMPARED = {"npu_fusion_attention"}
# A tensor that takes part in autograd cannot be given another shape.
_RESHAPING = {"resize_", "resize_as_", "set_"}
_CPU = torch.device("cpu")


class Case(NamedTuple):
    """What is to be run."""

    full_name: str
    kind: str
    name: str
    seed: int
    forward: Mapping[str, Any]
    backward: Mapping[str, Any] | None
    backward_message: str


class Call(NamedTuple):
    """The arguments of one side. ``watched`` are the leaves whose gradients are compared, or None."""

    args: list[Any]
    kwargs: dict[str, Any]
    watched: list[torch.Tensor | None]


class Ran(NamedTuple):
    """What both sides gave: tensors are detached and on the CPU."""

    inputs: Inputs
    gradient: torch.Tensor | None
    bench: list[Any]
    device: list[Any]
    bench_gradients: list[Any] | None
    device_gradients: list[Any] | None
    backward_message: str


class Executor:
    """Runs APIs of one dump on one device."""

    def __init__(self, device: torch.device, data_dir: Path | None = None, is_strict: bool = False) -> None:
        self._device = device
        self._data_dir = data_dir
        self._is_strict = is_strict

    def run(self, case: Case) -> Ran:
        """Raises whatever the operator raises."""
        wants_backward = case.backward is not None and not case.backward_message
        maker = InputMaker(case.name, case.seed, self._data_dir, wants_backward)
        inputs = maker.inputs(case.forward)
        if case.kind not in KINDS:
            return Ran(inputs, None, [None], [None], None, None, case.backward_message)
        bench_function = find_function(case.kind, case.name)
        device_function = find_device_function(case.kind, case.name, self._device.type)
        if bench_function is None or device_function is None:
            raise TypeError("'NoneType' object is not callable")
        given = list(tensors([*inputs.args, *inputs.kwargs.values()]))
        precision = plan_precision(case.name, given, _first(case.forward.get("output")), self._is_strict)
        device_call = self._device_call(inputs, case.name)
        bench_call = self._bench_call(inputs, precision)
        with torch.set_grad_enabled(wants_backward):
            device_output = self._run_device(device_function, device_call, precision, case.seed)
            bench_output = _run(bench_function, bench_call, case.seed)
        message = case.backward_message
        gradient, bench_gradients, device_gradients = None, None, None
        if wants_backward and case.backward is not None:
            if isinstance(device_output, (list, tuple)) and case.name not in _FIRST_OUTPUT_COUNTS:
                message += SEVERAL_OUTPUTS
            else:
                gradient = maker.gradient(case.backward)
                repeatable.seed(case.seed)
                found = _backward(device_output, gradient.to(self._device), device_call)
                device_gradients = [None if each is None else precision.as_computed(each) for each in found]
                repeatable.seed(case.seed)
                raised = gradient.to(precision.raised_gradient(gradient.dtype))
                bench_gradients = _backward(bench_output, raised, bench_call)
        return Ran(
            inputs,
            gradient,
            _outputs(bench_output, case.name),
            _outputs(device_output, case.name),
            bench_gradients,
            device_gradients,
            message,
        )

    def run_as_recorded(self, case: Case) -> tuple[list[Any] | None, list[Any] | None]:
        """Outputs of the CPU and of the device without any raising, or None for a type that is not run."""
        maker = InputMaker(case.name, case.seed, self._data_dir, False)
        inputs = maker.inputs(case.forward)
        if case.kind not in KINDS:
            return None, None
        function = find_function(case.kind, case.name)
        device_function = find_device_function(case.kind, case.name, self._device.type)
        if function is None or device_function is None:
            raise TypeError("'NoneType' object is not callable")
        as_they_are = Precision(case.name, False, None, is_raised=False)
        with torch.no_grad():
            bench = _run(function, self._bench_call(inputs, as_they_are), case.seed)
            device = self._run_device(
                device_function, self._device_call(inputs, case.name), as_they_are, case.seed
            )
        return _outputs(bench, case.name), _outputs(device, case.name)

    def _device_call(self, inputs: Inputs, name: str) -> Call:
        def there(tensor: torch.Tensor) -> torch.Tensor:
            # Always a copy: a function may write into what it is given.
            return tensor.detach().to(self._device, copy=True)

        return self._call(inputs, there, str(self._device), name in _RESHAPING)

    def _bench_call(self, inputs: Inputs, precision: Precision) -> Call:
        def raised(tensor: torch.Tensor) -> torch.Tensor:
            given = precision.as_given(tensor.detach())
            return given.to(precision.raised(tensor.dtype), copy=True)

        return self._call(inputs, raised, None, precision.name in _RESHAPING)

    def _call(
        self,
        inputs: Inputs,
        copy: Callable[[torch.Tensor], torch.Tensor],
        device: str | None,
        is_plain: bool,
    ) -> Call:
        watched: list[torch.Tensor | None] = []

        def handed(tensor: torch.Tensor, is_watched: bool) -> torch.Tensor:
            leaf = copy(tensor)
            wants_gradient = tensor.requires_grad and not is_plain
            if is_watched:
                watched.append(leaf if wants_gradient else None)
            return as_computed(leaf.requires_grad_(True)) if wants_gradient else leaf

        args = [map_tensors(_placed(arg, device), partial(handed, is_watched=True)) for arg in inputs.args]
        kwargs = {}
        for key, value in inputs.kwargs.items():
            if isinstance(value, Device):
                if device is not None and value.description.get("value"):
                    kwargs[key] = device
                continue
            is_watched = self._is_strict and isinstance(value, torch.Tensor) and value.requires_grad
            value = value.detach() if key == "out" and isinstance(value, torch.Tensor) else value
            kwargs[key] = map_tensors(value, partial(handed, is_watched=is_watched))
        return Call(args, kwargs, watched)

    def _run_device(self, function: Callable[..., Any], call: Call, precision: Precision, seed: int) -> Any:
        if precision.autocast is None:
            return _run(function, call, seed)
        with torch.autocast(device_type=self._device.type, dtype=precision.autocast):
            return _run(function, call, seed)


def as_computed(leaf: torch.Tensor) -> torch.Tensor:
    """The leaf as the result of something, so that functions which write into it may have gradients."""
    with torch.enable_grad():
        return leaf * 1


def _placed(arg: Any, device: str | None) -> Any:
    """An argument that names a device, on its side."""
    return (device or "cpu") if isinstance(arg, Device) else arg


def _run(function: Callable[..., Any], call: Call, seed: int) -> Any:
    repeatable.seed(seed)
    if function is torch.Tensor.__setitem__:
        # It returns nothing: what it wrote into is its output. A dump has a tuple of indices as a list.
        target, index, value = call.args
        target[tuple(index) if isinstance(index, list) else index] = value
        return target
    return function(*call.args, **call.kwargs)


def _first(recorded: Any) -> Any:
    return recorded[0] if isinstance(recorded, (list, tuple)) and recorded else None


def _backward(output: Any, gradient: torch.Tensor, call: Call) -> list[torch.Tensor | None]:
    """Gradients of the watched leaves; None where there is none."""
    if isinstance(output, (list, tuple)):
        output = output[0]
    output.backward(gradient)
    return [None if leaf is None or leaf.grad is None else _on_cpu(leaf.grad) for leaf in call.watched]


def _outputs(output: Any, name: str) -> list[Any]:
    """The outputs that are compared, on the CPU."""
    found = list(leaves(output))
    if name in _ONE_OUTPUT_COMPARED:
        del found[1:]
    return [_on_cpu(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in found]


def _on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().to(_CPU)
    return tensor.resolve_conj().resolve_neg()


def as_leaf(value: Any) -> Any:
    """What the comparison is given of an output."""
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_quantized:
        return describe(value)
    return value


def as_leaves(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else [as_leaf(value) for value in values]
