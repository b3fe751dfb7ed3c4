"""The configuration of a collection: read here, judged by the Rust core, refused in words scripts know."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from msprobe import _native
from msprobe.core.common.exceptions import CodedException, MsprobeException, ScopeException
from msprobe.core.common.file_check import read_config_file
from msprobe.core.common.log import logger
from msprobe.core.framework import Framework

DEFAULT_CONFIG = Path(__file__).parents[1] / "config.json"

_CODED: dict[str, type[CodedException]] = {
    "MsprobeException": MsprobeException,
    "ScopeException": ScopeException,
}
_PLAIN: dict[str, type[Exception]] = {
    "Exception": Exception,
    "ValueError": ValueError,
    "AttributeError": AttributeError,
}


def resolve(
    framework: Framework,
    config_path: str | None = None,
    task: str | None = None,
    dump_path: str | None = None,
    level: str | None = None,
    step: list[int | str] | None = None,
) -> _native.Config:
    """The configuration in a file, or the packaged one, with what the arguments say instead, for a framework.

    Logs what there is to warn about. Raises the exception that scripts know for whatever is wrong.
    """
    if config_path and not isinstance(config_path, str):
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "config_path must be a string")
    # The packaged file belongs to whoever installed the package, wherever that is.
    text = read_config_file(config_path) if config_path else DEFAULT_CONFIG.read_text(encoding="utf-8")
    return resolve_text(framework, text, config_path or str(DEFAULT_CONFIG), task, dump_path, level, step)


def resolve_text(
    framework: Framework,
    text: str,
    shown_path: str,
    task: str | None = None,
    dump_path: str | None = None,
    level: str | None = None,
    step: list[int | str] | None = None,
) -> _native.Config:
    """The same for the text of a file, which messages know as ``shown_path``."""
    overrides = json.dumps(
        {
            "task": _word(task),
            "dump_path": _path(dump_path),
            "level": _word(level),
            "step": _steps(step),
        }
    )
    config, log, refused = _native.resolve_config(text, overrides, framework)
    for severity, line in log:
        (logger.error if severity == "ERROR" else logger.warning)(line)
    if config is None:
        assert refused is not None
        raise _exception(shown_path, *refused)
    return config


class DebuggerConfig:
    """A configuration whose ``dump_path`` can be set while a run goes on; everything else only reads.

    Frameworks that collect phase after phase give each its own directory this way.
    """

    def __init__(self, native: _native.Config) -> None:
        self.native = native

    @property
    def dump_path(self) -> str:
        return self.native.dump_path

    @dump_path.setter
    def dump_path(self, dump_path: str) -> None:
        if not isinstance(dump_path, str) or not dump_path:
            raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "dump_path must be a string")
        self.native = self.native.with_dump_path(dump_path)

    def __getattr__(self, name: str) -> Any:
        if name == "native":
            raise AttributeError(name)
        return getattr(self.native, name)

    def __repr__(self) -> str:
        return repr(self.native)


def _exception(config_path: str, name: str, code: int | None, message: str) -> Exception:
    coded = _CODED.get(name)
    if coded is not None and code is not None:
        return coded(code, message)
    plain = _PLAIN.get(name)
    if plain is not None:
        return plain(message)
    return RuntimeError(f"cannot read {config_path}: {message}")


# JSON carries less than Python does. What it cannot carry becomes a value that is refused in the same words.
_REFUSED = False


def _word(value: object) -> object:
    return value if value is None or (isinstance(value, str) and value.isascii()) else _REFUSED


def _path(value: object) -> object:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise MsprobeException(
                MsprobeException.INVALID_PARAM_ERROR, f"dump_path must be a string of characters: {error}"
            ) from error
        return value
    return None if value is None else _REFUSED


def _steps(value: object) -> object:
    if not isinstance(value, list):
        return None if value is None else _REFUSED
    for item in value:
        # Strings and numbers are judged with the rest of the configuration.
        if not isinstance(item, (int, str)) and not (isinstance(item, float) and math.isfinite(item)):
            raise MsprobeException(
                MsprobeException.INVALID_PARAM_ERROR, f"step element {item} must be an integer or string."
            )
    return value
