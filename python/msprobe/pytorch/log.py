"""The log of the PyTorch side: a line names its rank once training is distributed."""

from __future__ import annotations

import torch.distributed

from msprobe.core.common.log import Logger


class RankedLogger(Logger):
    """Messages of the framework-neutral core go through ``msprobe.core.common.log`` and never have a rank."""

    def prefix(self) -> str:
        rank = current_rank()
        return "" if rank is None else f"[rank {rank}] "


def current_rank() -> int | None:
    """The rank of this process, ``None`` while training is not distributed."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return None


def log_end() -> None:
    """Says that collection is over, in a box."""
    text = "msprobe ends successfully."
    edge = "*" * 76
    logger.info(edge)
    logger.info(f"*{text:^{len(edge) - 2}}*")
    logger.info(edge)


logger = RankedLogger()
