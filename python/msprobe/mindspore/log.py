"""The log of the MindSpore side: a line names its rank once training is distributed."""

from __future__ import annotations

from mindspore import communication

from msprobe.core.common.log import Logger


class RankedLogger(Logger):
    """Messages of the framework-neutral core go through ``msprobe.core.common.log`` and never have a rank."""

    def prefix(self) -> str:
        rank = current_rank()
        return "" if rank is None else f"[rank {rank}] "


def current_rank() -> int | None:
    """The rank of this process, ``None`` while training is not distributed."""
    if getattr(communication.GlobalComm, "INITED", False):
        return int(communication.get_rank())
    return None


logger = RankedLogger()
