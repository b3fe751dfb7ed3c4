"""One operator run by PyTorch, which is the bench, and by MindSpore."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from msprobe.core.common.exceptions import ApiAccuracyCheckerException
from msprobe.mindspore.precheck.errors import unsupported
from msprobe.mindspore.precheck.values import MINDSPORE_NAMES, TORCH_NAMES, Array, DtypeName, map_arrays

_MINDSPORE = {
    "Mint": "mindspore.mint",
    "MintFunctional": "mindspore.mint.nn.functional",
    "Functional": "mindspore.ops",
}
_TORCH = {"Mint": "torch", "MintFunctional": "torch.nn.functional"}
ATTENTION = "flash_attention_score"


def _attribute(owner: Any, name: str) -> Callable[..., Any]:
    for part in name.split("."):
        owner = getattr(owner, part, None)
        if owner is None:
            raise ApiAccuracyCheckerException(ApiAccuracyCheckerException.ApiWrong)
    return owner  # type: ignore[no-any-return]


class TorchSide:
    """PyTorch on the CPU in the dtypes of the record."""

    def __init__(self) -> None:
        self._torch: Any = importlib.import_module("torch")

    def function(self, kind: str, name: str) -> Callable[..., Any]:
        if kind == "Functional" and name == ATTENTION:
            from msprobe.mindspore.precheck.flash_attention import flash_attention_score

            return flash_attention_score
        owner = self._torch.Tensor if kind == "Tensor" else importlib.import_module(_TORCH[kind])
        return _attribute(owner, name)

    def value(self, value: Any) -> Any:
        name = TORCH_NAMES.get(value.dtype if isinstance(value, Array) else value.name)
        if name is None:
            raise unsupported(f"{value} of torch")
        dtype = getattr(self._torch, name)
        if isinstance(value, DtypeName):
            return dtype
        return self._torch.as_tensor(value.elements.copy()).to(dtype)

    def forward(self, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> list[Any]:
        with self._torch.no_grad():
            return flat(function(*map_arrays(args, self.value), **map_arrays_of(kwargs, self.value)))

    def backward(
        self,
        function: Callable[..., Any],
        args: Any,
        kwargs: Mapping[str, Any],
        gradients: Sequence[Any],
    ) -> list[Any]:
        """Gradients of the float arguments."""
        given = map_arrays(args, self.value)
        watched = [leaf for leaf in flat(given) if self.is_float(leaf)]
        for leaf in watched:
            leaf.requires_grad_(True)
        outputs = flat(function(*given, **map_arrays_of(kwargs, self.value)))
        pairs = [
            (output, self.value(gradient))
            for output, gradient in zip(outputs, gradients)
            if isinstance(gradient, Array) and self.is_float(output) and output.requires_grad
        ]
        self._torch.autograd.backward([output for output, _ in pairs], [gradient for _, gradient in pairs])
        return [leaf.grad for leaf in watched]

    def is_float(self, leaf: Any) -> bool:
        return isinstance(leaf, self._torch.Tensor) and leaf.is_floating_point()

    def leaf(self, value: Any) -> Any:
        """What the comparison is given."""
        if isinstance(value, Array):
            value = self.value(value)
        if isinstance(value, self._torch.Tensor):
            from msprobe.core.tensor import describe

            return describe(value.detach().resolve_conj().resolve_neg())
        return value


class MindSporeSide:
    """MindSpore on the device it is set to."""

    def __init__(self) -> None:
        self._mindspore: Any = importlib.import_module("mindspore")

    def function(self, kind: str, name: str) -> Callable[..., Any]:
        owner = self._mindspore.Tensor if kind == "Tensor" else importlib.import_module(_MINDSPORE[kind])
        return _attribute(owner, name)

    def value(self, value: Any) -> Any:
        name = value.dtype if isinstance(value, Array) else value.name
        dtype = getattr(self._mindspore, MINDSPORE_NAMES[name])
        return dtype if isinstance(value, DtypeName) else self._mindspore.Tensor(value.elements, dtype)

    def forward(self, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> list[Any]:
        return flat(function(*map_arrays(args, self.value), **map_arrays_of(kwargs, self.value)))

    def backward(
        self,
        function: Callable[..., Any],
        args: Any,
        kwargs: Mapping[str, Any],
        gradients: Sequence[Any],
    ) -> list[Any]:
        """Gradients of the float arguments; the others stay out of the graph."""
        given = map_arrays(args, self.value)
        keywords = map_arrays_of(kwargs, self.value)
        watched = [leaf for leaf in flat(given) if self.is_float(leaf)]

        def of_watched(*leaves: Any) -> Any:
            remaining = iter(leaves)
            return function(*self._with(given, remaining), **keywords)

        sens = tuple(map_arrays(gradient, self.value) for gradient in gradients)
        gradient_of = self._mindspore.ops.GradOperation(get_all=True, sens_param=True)(of_watched)
        return list(gradient_of(*watched, sens[0] if len(sens) == 1 else sens))

    def _with(self, given: Any, leaves: Any) -> Any:
        if isinstance(given, tuple):
            return tuple(self._with(item, leaves) for item in given)
        return next(leaves) if self.is_float(given) else given

    def is_float(self, leaf: Any) -> bool:
        return isinstance(leaf, self._mindspore.Tensor) and bool(leaf.is_floating_point())

    def array(self, value: Any) -> Any:
        """A result as an array of neither framework, or what else it is."""
        if not isinstance(value, self._mindspore.Tensor):
            return value
        dtype = str(value.dtype)
        if value.dtype == self._mindspore.bfloat16:
            return Array(value.astype(self._mindspore.float32).asnumpy(), "BFloat16")
        return Array(value.asnumpy(), dtype)


def map_arrays_of(kwargs: Mapping[str, Any], convert: Callable[[Any], Any]) -> dict[str, Any]:
    return {key: map_arrays(value, convert) for key, value in kwargs.items()}


def flat(value: Any) -> list[Any]:
    """The leaves of nested lists and tuples, in order."""
    if isinstance(value, (list, tuple)) and not isinstance(value, (Array, DtypeName)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]
