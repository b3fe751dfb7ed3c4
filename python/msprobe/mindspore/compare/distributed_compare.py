"""All ranks of a step: of cells and functions, or kernels of a static graph."""

from __future__ import annotations

from typing import Any

from msprobe import _native
from msprobe.core.common.exceptions import CompareException
from msprobe.core.common.log import logger
from msprobe.core.compare.acc_compare import announce_end, compare_rank_directories, into
from msprobe.core.compare.options import check_dict, check_path
from msprobe.mindspore.compare.ms_compare import MAPPINGS


def ms_compare_distributed(npu_dump_dir: str, bench_dump_dir: str, output_path: str, **kwargs: Any) -> None:
    """``msprobe.pytorch.compare_distributed`` for MindSpore dumps, with the mappings of ``ms_compare``."""
    compare_rank_directories(logger, npu_dump_dir, bench_dump_dir, output_path, kwargs, mappings=MAPPINGS)


def ms_graph_compare(inputs: dict[str, Any], outputs: str) -> None:
    """Compares the kernels of two static graphs, one table for each rank and step.

    ``inputs``: ``npu_path``, ``bench_path``, the lists ``rank_id`` and ``step_id``; empty or missing: all.
    """
    inputs = check_dict(logger, inputs)
    files = _native.compare_graphs(
        check_path(logger, inputs.get("npu_path"), "npu_path"),
        check_path(logger, inputs.get("bench_path"), "bench_path"),
        _numbers(inputs.get("rank_id")),
        _numbers(inputs.get("step_id")),
        check_path(logger, outputs, "outputs"),
        into(logger),
    )
    announce_end(logger)
    for file in files:
        print(file)


def _numbers(value: object) -> list[int]:
    if value is None:
        return []
    if isinstance(value, list) and all(type(number) is int for number in value):
        return value
    message = "'rank_id' and 'step_id' should both be lists, please check!"
    logger.error(message)
    raise CompareException(CompareException.INVALID_OBJECT_TYPE_ERROR, message, "each a list of numbers")
