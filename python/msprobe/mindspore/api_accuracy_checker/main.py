"""``run_ut`` and ``multi_run_ut`` of MindSpore: each operator of a dump against PyTorch on the CPU."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from msprobe import _native
from msprobe.core.common.log import logger
from msprobe.core.precheck.arguments import UniqueDevices, add_paths, add_timeout
from msprobe.core.precheck.pool import Job, Lost, Pool, end_is_interruption
from msprobe.core.precheck.settings import check_dump_path
from msprobe.core.precheck.telling import tell_end, tell_notes
from msprobe.mindspore.precheck.check import Checker
from msprobe.mindspore.precheck.workers import FACTORY

MAX_DEVICE = 4095


class _Devices(UniqueDevices):
    """Device ids, each once and in range."""

    def complaint(self, device: Any) -> str | None:
        if not 0 <= device <= MAX_DEVICE:
            return f"the argument 'device_id' must be in range [0, {MAX_DEVICE}], but got {device}"
        return None


def _run_ut_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    add_paths(parser, is_dump_required=True)


def _multi_run_ut_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    add_paths(parser, is_dump_required=True)
    parser.add_argument(
        "-d",
        "--device",
        dest="device_id",
        nargs="+",
        type=int,
        default=[0],
        action=_Devices,
        metavar="DEVICE",
        help=f"device ids, one process for each, 0 to {MAX_DEVICE} (default: 0)",
    )
    add_timeout(parser)


def _begin(args: argparse.Namespace) -> tuple[_native.PrecheckPlan, _native.PrecheckTable, Path | None]:
    plan = _native.PrecheckPlan(check_dump_path(args.api_info_file), "mindspore")
    tell_notes(plan)
    if plan.framework not in ("mindspore", ""):
        raise NotImplementedError(
            f"dumps of {plan.framework} are not checked in this version; MindSpore's own and PyTorch's are"
        )
    out = args.out_path or "./"
    table = _native.PrecheckTable(out, "mindspore", args.result_csv_path or None)
    keeps = args.save_error_data and plan.data_dir is None
    return plan, table, Path(out) / "error_data" if keeps else None


def _end(
    table: _native.PrecheckTable, args: argparse.Namespace, command: str, device: str, is_interrupted: bool
) -> int:
    text, code, files = table.finish(command, args.api_info_file, device, is_interrupted)
    tell_end(text, files)
    return code


def run_ut_command(args: argparse.Namespace) -> int:
    """Checks the operators of a dump and answers with the exit code."""
    plan, table, error_data = _begin(args)
    checker = Checker(plan, error_data)
    is_interrupted = False
    try:
        for position, name in enumerate(plan.names()):
            if not table.is_done(name):
                table.add(checker.check(position))
    except KeyboardInterrupt:
        is_interrupted = True
    return _end(table, args, "run_ut", "mindspore", is_interrupted)


def multi_run_ut_command(args: argparse.Namespace) -> int:
    """The same by one process for each device; who is free takes the next operator."""
    plan, table, error_data = _begin(args)
    names = plan.names()
    options = {
        "api_info": str(Path(args.api_info_file).absolute()),
        "error_data": None if error_data is None else str(error_data.absolute()),
    }
    pool = Pool(Job(FACTORY, options), args.device_id, args.timeout)

    def take(_position: int, outcome: str) -> None:
        table.add(_native.PrecheckOutcome.from_json(outcome))

    def lose(lost: Lost) -> None:
        name = names[lost.position]
        text = f"API {name} {lost.reason}"
        logger.error(text)
        case = plan.case(lost.position)
        table.add(
            _native.precheck_compare_mindspore(
                name,
                None,
                None,
                text if case.forward is not None else None,
                text if case.forward is None else None,
            )
        )

    is_interrupted = False
    try:
        with end_is_interruption():
            pool.run([place for place, name in enumerate(names) if not table.is_done(name)], take, lose)
    except KeyboardInterrupt:
        is_interrupted = True
    devices = ", ".join(map(str, args.device_id))
    return _end(table, args, "multi_run_ut", devices, is_interrupted)
