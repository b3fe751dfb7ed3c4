"""The log of the PyTorch side: a line names its rank once training is distributed."""

from __future__ import annotations

import torch.distributed

from msprobe.core.common.log import Logger
from msprobe.core.common.log import log_end as _log_end


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
    _log_end(logger)


logger = RankedLogger()
