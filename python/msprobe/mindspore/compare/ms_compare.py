"""``ms_compare``: two dumps of cells and functions, the bench side also of PyTorch."""

from __future__ import annotations

from typing import Any

from msprobe.core.common.log import logger
from msprobe.core.compare.acc_compare import compare_dump_files

MAPPINGS = ("api_mapping", "cell_mapping", "layer_mapping")


def ms_compare(input_param: dict[str, Any], output_path: str, **kwargs: Any) -> None:
    """``msprobe.pytorch.compare`` for MindSpore dumps. The bench side may be a PyTorch dump.

    Further keyword arguments: ``cell_mapping``, ``api_mapping`` and ``layer_mapping``, each the path of a
    yaml file, or True for the built-in rules alone.
    """
    compare_dump_files(logger, input_param, output_path, kwargs, mappings=MAPPINGS)
