"""A service, configuration files and log lines for the tests of this directory."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from msprobe import _native
from msprobe.core.collect_config import DebuggerConfig

_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d+\) (.*)")

# What we say about recorded configurations and the reference does not, by the name of the case.
REMARKS = {
    "unknown key ignored": [
        '[WARNING] "foo" in the configuration is no key and is ignored',
        '[WARNING] "bar" in the section "statistics" is no key and is ignored',
    ],
    "task run_ut": [
        "[WARNING] the task run_ut is not in this version; collect with the task tensor on both devices and "
        "compare the dumps with `msprobe compare` instead",
    ],
}


def write_config(directory: Path, **keys: Any) -> str:
    """A configuration file with these keys, and a dump_path in any case."""
    path = directory / "config.json"
    path.write_text(json.dumps({"dump_path": "./dump", **keys}))
    return str(path)


def log_lines(output: str) -> list[str]:
    """The lines of the log without time and process."""
    lines = [_LINE.fullmatch(line) for line in output.splitlines()]
    assert all(lines), output
    return [line[1] for line in lines if line]


class NotingService:
    """Every call, in order, as its name and arguments."""

    made: list[NotingService]

    def __init__(self, config: _native.Config) -> None:
        assert type(config) is _native.Config
        self.config = DebuggerConfig(config)
        self.first_start = True
        self.calls: list[tuple[Any, ...]] = []
        self.made.append(self)

    def __getattr__(self, name: str) -> Any:
        def note(*arguments: Any) -> None:
            self.calls.append((name, *arguments))

        return note
