"""Faults in one rank of two; see ranks.py for the model."""

from __future__ import annotations

from typing import Any

from .faults import Case, backward_fault, clean, fault
from .inject import kernel, nothing, scaled, through_bfloat16

# Distributed trainings cost two processes each: the two tasks that matter, functions and modules together.
_COSTLY: dict[str, Any] = {"world": 2, "levels": ("mix",), "tasks": ("statistics", "tensor")}


def cases() -> list[Case]:
    return [
        fault(
            "ranks_scale_in_one",
            "split",
            kernel("addmm", scaled(), "first.down"),
            "first.down",
            "linear",
            rank=1,
            **_COSTLY,
        ),
        fault(
            "ranks_bf16_in_one",
            "split",
            kernel("gelu", through_bfloat16, "second.act"),
            "second.act",
            "gelu",
            rank=0,
            **_COSTLY,
        ),
        backward_fault(
            "ranks_backward_in_one",
            "split",
            kernel("gelu_backward", scaled(), nth=0),
            "second.act",
            "gelu",
            rank=1,
            **_COSTLY,
        ),
        clean("clean_ranks", "split", nothing, world=2, levels=("mix",), tasks=("statistics", "tensor")),
    ]
