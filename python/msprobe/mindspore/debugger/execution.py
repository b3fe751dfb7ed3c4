"""How MindSpore runs right now: call by call, or as a graph."""

from __future__ import annotations

from typing import Any, Callable

import mindspore as ms

PYNATIVE = "pynative"
GRAPH_KBYK = "graph_kbyk"
"""A static graph, kernel by kernel (O0, O1)."""
GRAPH_GE = "graph_ge"
"""A static graph as a whole (O2)."""


def execution_mode() -> str:
    if ms.get_context("mode") == ms.PYNATIVE_MODE:
        return PYNATIVE
    return GRAPH_GE if _jit_level() == "O2" else GRAPH_KBYK


def _jit_level() -> str:
    asked: tuple[Callable[[], Any], ...] = (
        lambda: ms.context.get_jit_config().get("jit_level"),
        lambda: ms.get_context("jit_level"),
    )
    for ask in asked:
        try:
            level = ask()
        except Exception:
            continue
        if level:
            return str(level)
    return "O2" if _soc() == "ascend910" else "O0"


def _soc() -> str:
    try:
        from mindspore._c_expression import MSContext

        return str(MSContext.get_instance().get_ascend_soc_version())
    except Exception:
        return ""
