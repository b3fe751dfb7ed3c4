"""``multi_run_ut``: the operators of a dump, run by several processes at once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msprobe import _native
from msprobe.core.precheck.arguments import DeviceChoice, add_timeout
from msprobe.core.precheck.pool import Job, Lost, Pool, end_is_interruption
from msprobe.core.precheck.settings import Settings, check_dump_path, read_settings
from msprobe.core.precheck.telling import tell_end
from msprobe.pytorch.api_accuracy_checker.run_ut.run_ut import (
    DROPOUT_NOTE,
    _run_ut_parser,
    error_data_directory,
    make_plan,
)
from msprobe.pytorch.log import logger
from msprobe.pytorch.precheck.functions import known_names
from msprobe.pytorch.precheck.workers import FACTORY

MAX_SPLITS = 64
DEFAULT_SPLITS = 8


@dataclass(frozen=True)
class Config:
    """What a run needs, resolved once."""

    args: argparse.Namespace
    settings: Settings
    devices: list[DeviceChoice]


def _multi_run_ut_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    _run_ut_parser(parser)
    parser.add_argument(
        "-n",
        "--num_splits",
        "--processes",
        dest="num_splits",
        type=int,
        choices=range(1, MAX_SPLITS + 1),
        default=DEFAULT_SPLITS,
        metavar="N",
        help=f"processes, 1 to {MAX_SPLITS}, shared out to the devices in turn (default: %(default)s)",
    )
    add_timeout(parser)


def multi_run_ut_command(args: argparse.Namespace) -> int:
    """Checks the operators of a dump and answers with the exit code."""
    return run_parallel_ut(prepare_config(args))


def prepare_config(args: argparse.Namespace) -> Config:
    """Checks what was asked for."""
    check_dump_path(args.api_info_file)
    devices = [args.device_id[number % len(args.device_id)] for number in range(args.num_splits)]
    return Config(args, read_settings(args.config_path, known_names()), devices)


def run_parallel_ut(config: Config) -> int:
    """Runs until all operators are done or somebody interrupts; what is done then is kept."""
    args, settings = config.args, config.settings
    plan = make_plan(args, settings)
    table = _native.PrecheckTable(args.out_path or "./", "pytorch", args.result_csv_path or None)
    error_data = error_data_directory(args, settings, table.stamp)
    names = plan.names()
    todo = [position for position, name in enumerate(names) if not table.is_done(name)]
    logger.info(DROPOUT_NOTE)
    logger.info(f"{len(todo)} operators are run by {min(len(config.devices), len(todo))} processes")
    pool = Pool(Job(FACTORY, _options(config, error_data)), config.devices, args.timeout)

    def take(_position: int, outcome: str) -> None:
        table.add(_native.PrecheckOutcome.from_json(outcome))

    def lose(lost: Lost) -> None:
        text = f"API {names[lost.position]} {lost.reason}"
        logger.error(text)
        table.add(_native.precheck_skip(names[lost.position], text, failed=True))

    is_interrupted = False
    try:
        with end_is_interruption():
            pool.run(todo, take, lose)
    except KeyboardInterrupt:
        is_interrupted = True
        logger.warning(f"interrupted; go on with -csv_path {table.result_path}")
    devices = ", ".join(str(device) for device in dict.fromkeys(config.devices))
    text, code, files = table.finish("multi_run_ut", args.api_info_file, devices, is_interrupted)
    tell_end(text, files)
    return code


def _options(config: Config, error_data: Path | None) -> dict[str, Any]:
    args, settings = config.args, config.settings
    # Processes share the cores, or they would wait for each other.
    threads = max(1, len(os.sched_getaffinity(0)) // len(config.devices))
    return {
        "api_info": str(Path(args.api_info_file).resolve()),
        "filter_api": args.filter_api,
        "white_list": settings.white_list,
        "black_list": settings.black_list,
        "error_data": None if error_data is None else str(error_data.resolve()),
        "is_strict": args.strict,
        "jit_compile": args.jit_compile,
        "imports": args.imports,
        "threads": threads,
    }


def split_json_file(input_file: str, num_splits: int, filter_api: bool) -> tuple[list[str], int]:
    """Writes ``temp_part{i}.json`` beside a dump, as scripts know it, and tells how many operators there are.

    ``run_parallel_ut`` needs none of them.
    """
    plan = _native.PrecheckPlan(input_file, "pytorch", filter_api)
    parts = plan.write_parts(num_splits, Path(input_file).parent)
    return [str(part) for part in parts], len(plan)


def main(argv: Sequence[str] | None = None) -> int:
    """Reads the command line and runs."""
    parser = argparse.ArgumentParser(prog="multi_run_ut", description=__doc__)
    _multi_run_ut_parser(parser)
    return multi_run_ut_command(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
