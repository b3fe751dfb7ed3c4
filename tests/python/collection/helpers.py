"""Configuration files and log lines for the tests of this directory."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d+\) (.*)")


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
