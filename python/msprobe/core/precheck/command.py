"""Which commands of ``msprobe`` run operators, and so are Python."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

ALIASES = {"acc_check": "run_ut", "multi_acc_check": "multi_run_ut"}
_RUN_UT = "msprobe.{}.api_accuracy_checker.run_ut"
_COMMANDS = {
    ("pytorch", "run_ut"): (_RUN_UT.format("pytorch") + ".run_ut", "_run_ut_parser", "run_ut_command"),
    ("pytorch", "multi_run_ut"): (
        _RUN_UT.format("pytorch") + ".multi_run_ut",
        "_multi_run_ut_parser",
        "multi_run_ut_command",
    ),
    ("pytorch", "run_overflow_check"): (
        _RUN_UT.format("pytorch") + ".run_overflow_check",
        "_run_overflow_check_parser",
        "_run_overflow_check_command",
    ),
    ("mindspore", "run_ut"): (
        "msprobe.mindspore.api_accuracy_checker.main",
        "_run_ut_parser",
        "run_ut_command",
    ),
    ("mindspore", "multi_run_ut"): (
        "msprobe.mindspore.api_accuracy_checker.main",
        "_multi_run_ut_parser",
        "multi_run_ut_command",
    ),
}
WORDS = {command for _, command in _COMMANDS} | set(ALIASES)
EXIT_USAGE, EXIT_INTERRUPTED = 2, 130


class PythonCommand(NamedTuple):
    """A command line that is not for Rust."""

    framework: str
    command: str
    rest: list[str]


def python_command(argv: Sequence[str]) -> PythonCommand | None:
    """The command of a command line without the program, if it is one of these."""
    words = list(argv)
    if len(words) >= 3 and words[0] in ("-f", "--framework"):
        framework, command, rest = words[1], words[2], words[3:]
    elif len(words) >= 2 and words[0].startswith("--framework="):
        framework, command, rest = words[0].partition("=")[2], words[1], words[2:]
    elif len(words) >= 2 and words[0].startswith("-f"):
        framework, command, rest = words[0][2:], words[1], words[2:]
    else:
        return None
    command = ALIASES.get(command, command)
    return PythonCommand(framework, command, rest) if (framework, command) in _COMMANDS else None


def run(found: PythonCommand) -> int:
    """Runs it and answers with the exit code."""
    module_name, add_flags, start = _COMMANDS[found.framework, found.command]
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        return _fail(error, f"{found.framework} has to be installed where {found.command} runs")
    parser = argparse.ArgumentParser(
        prog=f"msprobe -f {found.framework} {found.command}", description=module.__doc__
    )
    getattr(module, add_flags)(parser)
    args = parser.parse_args(found.rest)
    try:
        return int(getattr(module, start)(args) or 0)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        from msprobe.core.common.log import DEBUG, logger

        if logger.level <= DEBUG:
            raise
        return _fail(error)


def _fail(error: BaseException, hint: str = "") -> int:
    print(f"error: {error}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    return EXIT_USAGE
