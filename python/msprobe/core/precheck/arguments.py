"""Flags that pre-checks of all frameworks have, and how device ids are read."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, Union

DeviceChoice = Union[int, str]

DEFAULT_TIMEOUT_SECS = 600.0
_DEVICE_NAME = re.compile(r"[a-z][a-z0-9_]*(:\d+)?")


def device_choice(text: str) -> DeviceChoice:
    """A number, or a name such as ``cpu`` or ``cuda:1``."""
    try:
        return int(text)
    except ValueError:
        if _DEVICE_NAME.fullmatch(text) is None:
            raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None
        return text


class UniqueDevices(argparse.Action):
    """A list of devices, each once."""

    def complaint(self, device: Any) -> str | None:
        """What is wrong with one of them."""
        if isinstance(device, int) and device < 0:
            return "device id must be greater than or equal to 0"
        return None

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        devices = list(values or [])
        if len(set(devices)) != len(devices):
            parser.error("device id must be unique")
        for complaint in filter(None, map(self.complaint, devices)):
            parser.error(complaint)
        setattr(namespace, self.dest, devices)


def positive_seconds(text: str) -> float:
    """A time that can be waited for."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def add_paths(parser: argparse.ArgumentParser, *, is_dump_required: bool) -> None:
    """The dump, and where results go."""
    parser.add_argument(
        "-api_info",
        "--api_info_file",
        dest="api_info_file",
        default="",
        required=is_dump_required,
        metavar="FILE",
        help="dump.json whose operators are checked",
    )
    parser.add_argument(
        "-o",
        "--out_path",
        dest="out_path",
        default="",
        metavar="DIR",
        help="directory for results, made if it is not there (default: ./)",
    )
    parser.add_argument(
        "-csv_path",
        "--result_csv_path",
        dest="result_csv_path",
        default="",
        metavar="FILE",
        help="accuracy_checking_result_….csv of an interrupted run, which is continued",
    )
    parser.add_argument(
        "-save_error_data",
        dest="save_error_data",
        action="store_true",
        help="keep inputs and outputs of operators that do not pass",
    )


def add_extras(parser: argparse.ArgumentParser) -> None:
    """What the reference does not have."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="judge by the corrected rules: the worst output decides, equal NaN and Inf agree "
        "(see docs/precheck.md)",
    )
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="Python module to import first, such as one that brings a device or operators; may be repeated",
    )


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """How long one operator may take."""
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        default=DEFAULT_TIMEOUT_SECS,
        metavar="SECONDS",
        help="an operator that takes longer is given up and reported (default: %(default)g)",
    )
