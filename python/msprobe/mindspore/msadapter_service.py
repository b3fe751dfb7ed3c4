"""A collection from PyTorch's functions on MindSpore's tensors: names of the one, values of the other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msprobe
from msprobe import _native
from msprobe.core.framework import Framework
from msprobe.mindspore.hooks.apis import Section
from msprobe.mindspore.hooks.cells import CellHooks
from msprobe.mindspore.service import Service

# The functions PyTorch collection records.
_API_LIST = Path(msprobe.__file__).parent / "pytorch" / "hooks" / "support_wrap_ops.yaml"
# Indexing is not replaced where it writes.
_LEFT_OUT = ("__setitem__",)


class MSAdapterService(Service):
    """The service where ``torch`` stands on MindSpore."""

    def __init__(self, config: _native.Config, framework: Framework, torch: Any) -> None:
        self._torch = torch
        super().__init__(config, framework)

    def _make_hooks(self) -> None:
        super()._make_hooks()
        self._apis.use(self._sections, _API_LIST, _LEFT_OUT)
        self._cells = CellHooks(self._collector, self.window, self._gradients, _modules_below, _parameters)

    def _sections(self) -> list[Section]:
        torch = self._torch
        sections = [
            Section("functional", "Functional", [torch.nn.functional]),
            Section("tensor", "Tensor", [torch.Tensor]),
            Section("torch", "Torch", [torch]),
        ]
        npu = sys.modules.get("torch_npu")
        if npu is not None:
            sections.append(Section("torch_npu", "NPU", [npu]))
        distributed = getattr(torch, "distributed", None)
        if distributed is not None:
            homes = [distributed, getattr(distributed, "distributed_c10d", None)]
            sections.append(
                Section("distributed", "Distributed", [home for home in homes if home is not None])
            )
        return sections

    def _tell_compiled(self, models: list[tuple[str, Any]]) -> None:
        """Modules of torch are not compiled."""

    def _install_primitives(self, models: list[Any]) -> None:
        """Modules of torch have no operators as attributes."""


def _modules_below(model: Any) -> Iterator[tuple[str, Any]]:
    return ((name, module) for name, module in model.named_modules() if module is not model)


def _parameters(module: Any) -> dict[str, Any]:
    return {name: parameter for name, parameter in module._parameters.items() if parameter is not None}
