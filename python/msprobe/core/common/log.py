"""The log of the Python side: one line per message on stdout.

``MSPROBE_LOG_LEVEL`` is read at import: 0 debug, 1 info (default, also for anything else), 2 warning,
3 error, 4 silent.
"""

from __future__ import annotations

import os
import re
import sys
import time

DEBUG, INFO, WARNING, ERROR, SILENT = range(5)

_NAMES = {DEBUG: "DEBUG", INFO: "INFO", WARNING: "WARNING", ERROR: "ERROR"}
# What could break a line or fake another one, also in its URL-encoded form.
# Marks that turn the direction of what follows, and separators of lines, are such things too.
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|%0[0-9a-d]|%7f",
    re.IGNORECASE,
)


def level_from_environment() -> int:
    setting = os.environ.get("MSPROBE_LOG_LEVEL", "")
    return int(setting) if setting in {"0", "1", "2", "3", "4"} else INFO


class Logger:
    """Writes messages at or above its level."""

    def __init__(self) -> None:
        self.level = level_from_environment()

    def debug(self, message: object) -> None:
        self._log(DEBUG, message)

    def info(self, message: object) -> None:
        self._log(INFO, message)

    def warning(self, message: object) -> None:
        self._log(WARNING, message)

    def error(self, message: object) -> None:
        self._log(ERROR, message)

    def prefix(self) -> str:
        """What stands between the process and the level; adapters that know a rank put it here."""
        return ""

    def _log(self, level: int, message: object) -> None:
        if level < self.level:
            return
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        text = _CONTROL.sub("_", str(message))
        print(f"{now} ({os.getpid()}) {self.prefix()}[{_NAMES[level]}] {text}", file=sys.stdout, flush=True)


def log_end(log: Logger) -> None:
    """Says that collection is over, in a box."""
    text = "msprobe ends successfully."
    edge = "*" * 76
    log.info(edge)
    log.info(f"*{text:^{len(edge) - 2}}*")
    log.info(edge)


logger = Logger()
