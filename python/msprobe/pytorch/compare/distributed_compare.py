"""``compare_distributed``: all ranks of a step."""

from __future__ import annotations

from typing import Any

from msprobe.core.compare.acc_compare import compare_rank_directories
from msprobe.pytorch.log import logger


def compare_distributed(npu_dump_dir: str, bench_dump_dir: str, output_path: str, **kwargs: Any) -> None:
    """Compares the ``rank*`` directories of two steps, one table each.

    Keyword arguments are those of ``compare`` without ``stack_mode``, which is ignored, and ``suffix``, which
    is refused; ``is_print_compare_log`` (True) is one of them here. A rank that cannot be compared is logged,
    named in the failures of verdict.json and left out.
    """
    compare_rank_directories(logger, npu_dump_dir, bench_dump_dir, output_path, kwargs)
