"""``compare`` with the tables of the older form, ``pt_compare`` with those of the newest."""

from __future__ import annotations

from typing import Any

from msprobe.core.compare.acc_compare import compare_dump_files, compare_newest
from msprobe.pytorch.log import logger


def compare(input_param: dict[str, Any], output_path: str, **kwargs: Any) -> None:
    """Compares the dump.json (or debug.json) of two runs and writes tables, advice and a verdict.

    ``input_param``: ``npu_json_path`` and ``bench_json_path``; optionally ``stack_json_path`` and
    ``is_print_compare_log`` (a log line per row of real data). The call adds ``npu_dump_data_dir``,
    ``bench_dump_data_dir`` and ``stack_json_path`` to it.

    Keyword arguments, others are ignored:

    - ``stack_mode`` (False): show the call stacks of ``stack_json_path``. Without that key they are shown
      whenever stack.json lies beside the dump;
    - ``auto_analyze`` (True): write the advisor file;
    - ``fuzzy_match`` (False): match names without their call numbers;
    - ``data_mapping``: a yaml file or a dict, NPU row name to bench row name;
    - ``suffix`` (""): put into the names of the results;
    - ``formats`` (("xlsx",)): some of xlsx, csv, json, html;
    - ``tolerance`` (None): what the verdict tolerates, one number for all floats or a dict such as
      ``{"float32": 1e-3, "bfloat16": 0.02}``;
    - ``noise`` (None): a further run of the bench side, or a list of them, that shows how much is noise.

    The verdict is printed, and written to verdict.json; differences raise nothing. What cannot be compared
    raises ``CompareException``, broken JSON ``RuntimeError``, another type of ``data_mapping`` ``TypeError``.
    Ctrl-C ends it after the tensors or the table at hand and leaves no unfinished file.
    """
    compare_dump_files(logger, input_param, output_path, kwargs)


def pt_compare(input_param: dict[str, Any], output_path: str, **kwargs: Any) -> None:
    """Compares two dumps with the tables of the newest form, as ``msprobe compare -tp … -gp …`` does.

    ``input_param``: ``npu_path`` and ``bench_path``, each a dump.json, or each a directory with a dump,
    ranks or steps.

    Keyword arguments, others are ignored: ``fuzzy_match`` (False), ``data_mapping``, ``cell_mapping``,
    ``suffix`` (files only), ``first_diff_analyze`` (False; directories: the first difference across ranks),
    ``is_print_compare_log`` (False), ``formats`` (("csv",)), ``tolerance`` (None), ``noise`` (None). The rest
    is as in ``compare``.
    """
    compare_newest(logger, input_param, output_path, kwargs, mappings=("cell_mapping",))
