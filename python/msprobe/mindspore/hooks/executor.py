"""What runs operators in PyNative mode.

It does so in the background: what an operator failed with is raised by whoever waits for results next. Hooks
read values, so they wait earlier than the script would, and call ``sync`` first: what it raises is the
script's and goes to it, while what a hook itself fails with never does.
"""

from __future__ import annotations

from typing import Any, Callable

import mindspore as ms

try:
    from mindspore.graph.api import _pynative_executor
except ImportError:
    from mindspore.common.api import _pynative_executor

executor: Any = _pynative_executor
sync: Callable[[], None] = _pynative_executor.sync


def wake() -> None:
    """Has the executor start its threads. It dies when the first operators of a process come from several
    threads and one of them is waited for at once."""
    ms.Tensor(0.0, ms.float32).abs()
    sync()
