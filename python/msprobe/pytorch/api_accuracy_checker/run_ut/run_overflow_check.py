"""``run_overflow_check``: whether operators of a dump overflow on the CPU as they do on the device."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

from msprobe import _native
from msprobe.core.precheck.arguments import add_extras, device_choice
from msprobe.core.precheck.settings import check_dump_path
from msprobe.pytorch.api_accuracy_checker.run_ut.run_ut import DROPOUT_NOTE
from msprobe.pytorch.log import logger
from msprobe.pytorch.precheck.devices import choose_device, switch_compilation
from msprobe.pytorch.precheck.execute import Case, Executor, as_leaves
from msprobe.pytorch.precheck.repeatable import without_dropout

_NOT_RUN = {"Distributed", "MindSpeed", "NPU"}


def _run_overflow_check_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument(
        "-api_info",
        "--api_info_file",
        dest="api_info_file",
        required=True,
        metavar="FILE",
        help="dump.json whose operators are run",
    )
    parser.add_argument(
        "-j",
        "--jit_compile",
        dest="jit_compile",
        default="",
        metavar="TEXT",
        help="any text: compile operators (NPU)",
    )
    parser.add_argument(
        "-d",
        "--device",
        dest="device_id",
        type=device_choice,
        default=0,
        metavar="DEVICE",
        help="number or name of the device (default: %(default)s)",
    )
    add_extras(parser)


def _run_overflow_check_command(args: argparse.Namespace) -> int:
    """Runs the operators. What is found is logged; exit code 1 if some overflow on one side only."""
    for module in args.imports:
        importlib.import_module(module)
    device = choose_device(args.device_id)
    switch_compilation(device, bool(args.jit_compile))
    logger.info(DROPOUT_NOTE)
    logger.info("start UT test")
    found = run_overflow_check(args.api_info_file, device, args.strict)
    logger.info("UT task completed.")
    return int(found > 0)


def run_overflow_check(file: str, device: Any = None, is_strict: bool = False) -> int:
    """Logs a line for each operator and answers how many overflow on one side only."""
    plan = _native.PrecheckPlan(check_dump_path(file), "pytorch")
    executor = Executor(choose_device(0) if device is None else device, plan.data_dir)
    abnormal = 0
    with without_dropout():
        for position in range(len(plan)):
            level, text = _check_one(plan.case(position), executor, is_strict)
            getattr(logger, level)(text)
            abnormal += "is an abnormal overflow" in text
    return abnormal


def _check_one(case: _native.PrecheckCase, executor: Executor, is_strict: bool) -> tuple[str, str]:
    """Level and text of what is to be logged."""
    if case.kind in _NOT_RUN:
        return "info", f"{case.kind} api is not supported for run ut. SKIP."
    if case.forward is None:
        return "warning", f"The dump has no forward entry of {case.full_name}. SKIP."
    try:
        bench, on_device = executor.run_as_recorded(
            Case(case.full_name, case.kind, case.name, case.seed, case.forward, None, "")
        )
    except Exception as error:
        return _native.precheck_overflow_failure(case.full_name, str(error))
    bench_leaves, device_leaves = as_leaves(bench), as_leaves(on_device)
    overflows = None if device_leaves is None else _native.precheck_overflows(device_leaves)
    return _native.precheck_overflow_message(
        case.full_name, bench_leaves, device_leaves, overflows, is_strict
    )


def _run_overflow_check(parser: argparse.ArgumentParser | None = None) -> int:
    """Reads the command line and runs."""
    parser = parser or argparse.ArgumentParser(prog="run_overflow_check", description=__doc__)
    _run_overflow_check_parser(parser)
    return _run_overflow_check_command(parser.parse_args(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(_run_overflow_check())
