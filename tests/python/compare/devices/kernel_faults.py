"""One call of one kernel of the other device (see ``sums``) that is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ..faults.inject import Change, Injection
from ..faults.models import Batch


@dataclass
class KernelFault:
    """One call of one kernel is wrong: what it returns, the gradient of its input or weight, or its bias."""

    kernel: str
    stage: str
    change: Change
    nth: int
    is_here: bool = False
    fired: int = 0

    def apply(self, stage: str, value: Tensor) -> Tensor:
        if stage != self.stage:
            return value
        self.fired += 1
        return self.change(value)


class Healthy:
    """No fault."""

    def apply(self, stage: str, value: Tensor) -> Tensor:
        return value


_HEALTHY = Healthy()
_faults: list[KernelFault] = []


def fault_of(kernel: str) -> KernelFault | Healthy:
    """The fault of a call that starts now."""
    for fault in _faults:
        if fault.is_here and fault.kernel == kernel:
            fault.nth -= 1
            if fault.nth == -1:
                return fault
    return _HEALTHY


def faulty(kernel: str, stage: str, change: Change, inside: str, nth: int = 0) -> Injection:
    """The nth call of a kernel of this device while module ``inside`` runs forward.

    ``change`` is applied to a ``stage``: ``output``, ``bias``, ``input_gradient`` or ``weight_gradient``.
    """

    @contextmanager
    def inject(model: nn.Module, batch: Batch) -> Iterator[None]:
        fault = KernelFault(kernel, stage, change, nth)
        module = model.get_submodule(inside)
        original = module.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            fault.is_here = True
            try:
                return original(*args, **kwargs)
            finally:
                fault.is_here = False

        module.forward = forward
        _faults.append(fault)
        try:
            yield
        finally:
            _faults.remove(fault)
        assert fault.fired == 1, f"{kernel} in {inside} was changed {fault.fired} times"

    return inject
