"""``common_dir_compare``: two trees of single arrays."""

from __future__ import annotations

from typing import Any

from msprobe import _native
from msprobe.core.common.exceptions import CompareException
from msprobe.core.common.log import logger
from msprobe.core.compare.acc_compare import announce_end, into
from msprobe.core.compare.options import check_dict, check_path


def common_dir_compare(input_params: dict[str, Any], output_dir: str) -> None:
    """Compares the ``{name}_{dtype}_{index}.npy`` of two trees and leaves a result.csv for each directory.

    ``input_params``: ``npu_path``, ``bench_path``, and ``map_dict`` from NPU names to bench names.
    """
    inputs = check_dict(logger, input_params, "input_params")
    files = _native.compare_common_dirs(
        check_path(logger, inputs.get("npu_path"), "npu_path"),
        check_path(logger, inputs.get("bench_path"), "bench_path"),
        _names(inputs.get("map_dict")),
        check_path(logger, output_dir, "output_dir"),
        into(logger),
    )
    announce_end(logger)
    for file in files:
        print(file)


def _names(value: object) -> list[tuple[str, str]]:
    if value is None:
        return []
    if isinstance(value, dict):
        pairs = list(value.items())
        if all(isinstance(name, str) and isinstance(partner, str) for name, partner in pairs):
            return pairs
    message = "map_dict should be a dict of names, please check!"
    logger.error(message)
    raise CompareException(CompareException.INVALID_OBJECT_TYPE_ERROR, message)
