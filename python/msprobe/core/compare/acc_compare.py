"""The comparisons behind the functions of each framework, which differ in their log and their mappings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msprobe import _native
from msprobe.core.common.exceptions import CompareException
from msprobe.core.common.log import Logger
from msprobe.core.compare.options import (
    Choice,
    check_bool,
    check_dict,
    check_path,
    check_stack,
    check_suffix,
    collect_options,
    path_text,
    refuse,
)

TENSOR_DIRECTORY = "dump_tensor_data"
STACK_FILE = "stack.json"
NO_PATH = "Please check the json path is valid and ensure that neither npu_path nor bench_path is None."


class DetectedPath(str):
    """A stack.json that was found, not named: with the same dict, the next call looks for it again."""

    __slots__ = ()


def compare_dump_files(
    logger: Logger,
    input_param: Any,
    output_path: Any,
    kwargs: Mapping[str, Any],
    mappings: Iterable[str] = (),
) -> None:
    """Compares two dump.json, or two debug.json, with the tables, colours and advice of the older form."""
    inputs = check_dict(logger, input_param)
    target, golden = dump_files(logger, inputs, "npu_json_path", "bench_json_path")
    stack: Choice
    named = inputs.get("stack_json_path")
    if path_text(inputs.get("npu_json_path")) != target:
        named = beside_the_dump(named, target)
    if "stack_json_path" in inputs and not isinstance(named, DetectedPath):
        stack = check_stack(logger, named, check_bool(logger, "stack_mode", kwargs.get("stack_mode", False)))
    else:
        stack = True
        beside = Path(target).parent / STACK_FILE
        inputs["stack_json_path"] = DetectedPath(beside) if beside.exists() else None
    advisor = check_bool(logger, "auto_analyze", kwargs.get("auto_analyze", True))
    options = collect_options(
        logger,
        "old",
        output_path,
        kwargs,
        stack=stack,
        advisor=advisor,
        log_rows=check_bool(logger, "is_print_compare_log", inputs.get("is_print_compare_log", False)),
        mappings=mappings,
    )
    suffix = check_suffix(logger, kwargs.get("suffix", ""))
    answer, files = _native.compare_files(target, golden, suffix, options, into(logger))
    announce(logger, answer, files)


def compare_rank_directories(
    logger: Logger,
    npu_dump_dir: Any,
    bench_dump_dir: Any,
    output_path: Any,
    kwargs: Mapping[str, Any],
    mappings: Iterable[str] = (),
) -> None:
    """Compares the ranks of two step directories. One that cannot be compared is reported and left out."""
    if kwargs.get("suffix"):
        message = "Argument 'suffix' is not supported for compare_distributed."
        logger.error(message)
        raise CompareException(CompareException.INVALID_PARAM_ERROR, message)
    target = check_path(logger, npu_dump_dir, "npu_dump_dir")
    golden = check_path(logger, bench_dump_dir, "bench_dump_dir")
    options = collect_options(
        logger,
        "old",
        output_path,
        kwargs,
        stack=True,
        advisor=check_bool(logger, "auto_analyze", kwargs.get("auto_analyze", True)),
        log_rows=check_bool(logger, "is_print_compare_log", kwargs.get("is_print_compare_log", True)),
        mappings=mappings,
    )
    answer, files = _native.compare_ranks(target, golden, options, into(logger))
    announce(logger, answer, files)


def compare_newest(
    logger: Logger,
    input_param: Any,
    output_path: Any,
    kwargs: Mapping[str, Any],
    mappings: Iterable[str] = (),
) -> None:
    """Compares two dumps, or all that two directories have in common, with the tables of the newest form."""
    inputs = check_dict(logger, input_param)
    target = check_path(logger, inputs.get("npu_path"), "npu_path")
    golden = check_path(logger, inputs.get("bench_path"), "bench_path")
    options = collect_options(
        logger,
        "newest",
        output_path,
        kwargs,
        stack=True,
        advisor=False,
        log_rows=check_bool(logger, "is_print_compare_log", kwargs.get("is_print_compare_log", False)),
        mappings=mappings,
    )
    suffix = check_suffix(logger, kwargs.get("suffix", ""))
    if Path(target).is_dir() and Path(golden).is_dir():
        if suffix:
            message = (
                "Invalid input parameter, suffix is for two files; each rank of directories has its own."
            )
            raise refuse(logger, CompareException.INVALID_PARAM_ERROR, message)
        answer, files = _native.compare_dumps(target, golden, options, into(logger))
    else:
        target, golden = dump_files(logger, inputs, "npu_path", "bench_path")
        answer, files = _native.compare_files(target, golden, suffix, options, into(logger))
    announce(logger, answer, files)


def beside_the_dump(stack: Any, dump: str) -> Any:
    """A stack file as it is named, or the one beside a dump that was found elsewhere than it was named."""
    path = path_text(stack)
    if path is None or isinstance(stack, DetectedPath) or Path(path).exists():
        return stack
    beside = Path(dump).parent / Path(path).name
    return str(beside) if beside.exists() else stack


def dump_files(logger: Logger, inputs: dict[str, Any], npu_key: str, bench_key: str) -> tuple[str, str]:
    """Both dumps; the dict of the caller gets the directories of their tensors."""
    target, golden = path_text(inputs.get(npu_key)), path_text(inputs.get(bench_key))
    # Which names are allowed is decided in Rust; a path that is none does not get there.
    if target is None or golden is None:
        raise refuse(logger, CompareException.INVALID_PATH_ERROR, NO_PATH)
    target, golden = (str(_native.find_dump(path, into(logger))) for path in (target, golden))
    inputs["npu_dump_data_dir"] = str(Path(target).parent / TENSOR_DIRECTORY)
    inputs["bench_dump_data_dir"] = str(Path(golden).parent / TENSOR_DIRECTORY)
    return target, golden


def into(logger: Logger) -> Callable[[str, str], None]:
    """Where Rust says what it notices: the word is the name of a logger's method."""
    methods = {
        "debug": logger.debug,
        "info": logger.info,
        "warning": logger.warning,
        "error": logger.error,
    }
    return lambda level, text: methods[level](text)


def announce(logger: Logger, answer: str, files: list[Path]) -> None:
    """The straight answer, where the tables are, and the box users know as the end of a comparison."""
    print(answer)
    if len(files) > 1:
        print(f"\nResults are in {files[-1].parent}:")
        for file in files:
            print(f"  {file.name}")
    announce_end(logger)


def announce_end(logger: Logger) -> None:
    text = "msprobe compare ends successfully."
    edge = "*" * (len(text) + 50)
    logger.info(edge)
    logger.info(f"*{text:^{len(edge) - 2}}*")
    logger.info(edge)
