"""``run_ut``: every operator of a dump, one after the other in this process."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from msprobe import _native
from msprobe.core.precheck.arguments import UniqueDevices, add_extras, add_paths, device_choice
from msprobe.core.precheck.settings import Settings, check_dump_path, read_settings
from msprobe.core.precheck.telling import tell_end, tell_notes
from msprobe.pytorch.log import logger
from msprobe.pytorch.precheck.check import Checker
from msprobe.pytorch.precheck.devices import choose_device, switch_compilation
from msprobe.pytorch.precheck.functions import known_names
from msprobe.pytorch.precheck.repeatable import without_dropout

DROPOUT_NOTE = "For precision comparison, the probability p in the dropout method is set to 0."


def _run_ut_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    add_paths(parser, is_dump_required=False)
    parser.add_argument(
        "-j", "--jit_compile", dest="jit_compile", action="store_true", help="compile operators (NPU only)"
    )
    parser.add_argument(
        "-d",
        "--device",
        dest="device_id",
        nargs="+",
        type=device_choice,
        default=[0],
        action=UniqueDevices,
        metavar="DEVICE",
        help="number of a device of the kind that is there (npu, cuda, another accelerator, cpu, in this "
        "order), or a name such as cpu or cuda:1 (default: 0)",
    )
    parser.add_argument(
        "-f",
        "--filter_api",
        dest="filter_api",
        action="store_true",
        help="check calls with equal arguments, whatever their extremes, once",
    )
    parser.add_argument(
        "-config",
        "--config_path",
        dest="config_path",
        default="",
        metavar="FILE",
        help="configuration file, of which the section run_ut is read",
    )
    add_extras(parser)


def run_ut_command(args: argparse.Namespace) -> int:
    """Checks the operators of a dump and answers with the exit code."""
    for module in args.imports:
        importlib.import_module(module)
    settings = read_settings(args.config_path, known_names())
    device = choose_device(args.device_id[0])
    switch_compilation(device, args.jit_compile)
    plan = make_plan(args, settings)
    table = _native.PrecheckTable(args.out_path or "./", "pytorch", args.result_csv_path or None)
    checker = Checker(plan, device, error_data_directory(args, settings, table.stamp), args.strict)
    logger.info(DROPOUT_NOTE)
    logger.info(f"start UT test on {device}")
    is_interrupted = False
    with without_dropout():
        try:
            for position, name in enumerate(plan.names()):
                if not table.is_done(name):
                    table.add(checker.check(position))
        except KeyboardInterrupt:
            is_interrupted = True
    text, code, files = table.finish("run_ut", args.api_info_file, str(device), is_interrupted)
    tell_end(text, files)
    return code


def make_plan(args: argparse.Namespace, settings: Settings) -> _native.PrecheckPlan:
    """The operators of the dump, in order."""
    plan = _native.PrecheckPlan(
        check_dump_path(args.api_info_file),
        "pytorch",
        args.filter_api,
        settings.white_list,
        settings.black_list,
    )
    tell_notes(plan)
    return plan


def error_data_directory(args: argparse.Namespace, settings: Settings, stamp: str) -> Path | None:
    """Where data of errors goes, if it is kept."""
    return Path(settings.error_data_path) / f"ut_error_data{stamp}" if args.save_error_data else None


def _run_ut(parser: argparse.ArgumentParser | None = None) -> int:
    """Reads the command line and runs."""
    parser = parser or argparse.ArgumentParser(prog="run_ut", description=__doc__)
    _run_ut_parser(parser)
    return run_ut_command(parser.parse_args(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(_run_ut())
