"""A stand-in for Ascend's extension of torch: the operators of the manual's table, each of which adds one.

Every third is an operator and nothing else, every third is an operator that the package hands on, and every
third is a function of the package alone. So it is with the real one, where it depends on the version.
"""

from __future__ import annotations

import torch
from tests.python.manual.snippets import NPU_OPERATORS

_library = torch.library.Library("npu", "DEF")


def _function(name: str):  # type: ignore[no-untyped-def]
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.detach().clone().add_(1)

    function.__name__ = function.__qualname__ = name
    return function


for _place, _name in enumerate(dict.fromkeys(NPU_OPERATORS)):
    if _place % 3 == 2:
        globals()[_name] = _function(_name)
        continue
    _library.define(f"{_name}(Tensor x) -> Tensor")
    _library.impl(_name, _function(_name), "CompositeImplicitAutograd")
    if _place % 3 == 1:
        globals()[_name] = getattr(torch.ops.npu, _name)


def find(name: str):  # type: ignore[no-untyped-def]
    """The function as a user would call it."""
    return globals().get(name) or getattr(torch.ops.npu, name)
