"""``merge_result``: chosen figures of the result tables of several ranks next to each other."""

from __future__ import annotations

import os

from msprobe import _native
from msprobe.core.common.log import logger
from msprobe.core.compare.acc_compare import into
from msprobe.core.compare.options import check_path


def merge_result(
    input_dir: str | os.PathLike[str],
    output_dir: str | os.PathLike[str],
    config_path: str | os.PathLike[str],
) -> None:
    """Merges the ``compare_result_rank*.xlsx`` of ``input_dir`` into one workbook in ``output_dir``.

    The yaml file ``config_path`` lists APIs (``api``) and columns (``compare_index``, all if it is missing).
    Raises ``CompareException``: 33 for tables or a config that cannot be merged.
    """
    merged = _native.merge_tables(
        check_path(logger, input_dir, "input_dir"),
        check_path(logger, output_dir, "output_dir"),
        check_path(logger, config_path, "config_path"),
        into(logger),
    )
    print(f"merged into {merged}")
