"""What is asked of a comparison, checked and in the form that Rust takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypedDict, Union

from msprobe.core.common.exceptions import CompareException, FileCheckException
from msprobe.core.common.log import Logger

FAILED: Final = "Compare failed. Please check the arguments and do it again!"
FORMATS: Final = ("xlsx", "csv", "json", "html")

# A mapping of names: switched on with its built-in rules, or a file of rules.
Choice = Union[bool, str]


class Options(TypedDict):
    """``msprobe._native`` reads it key by key."""

    form: str
    output: str
    formats: list[str]
    # True: stack.json beside the dump; False: none; a path: that file.
    stack: Choice
    advisor: bool
    fuzzy: bool
    api_mapping: Choice
    cell_mapping: Choice
    layer_mapping: Choice
    data_mapping: str | dict[str, str] | None
    log_rows: bool
    first_difference: bool
    tolerance: str
    noise: list[str]
    allow_incomplete: str


def refuse(logger: Logger, code: int, message: str) -> CompareException:
    """The exception to raise for an argument; what is wrong is logged as users know it."""
    logger.error(message)
    logger.error(FAILED)
    return CompareException(code, message)


def check_dict(logger: Logger, value: object, name: str = "input_param") -> dict[str, Any]:
    """The first argument of the functions that take a dict."""
    if isinstance(value, dict):
        return value
    message = f"{name} should be dict, please check!"
    logger.error(message)
    raise CompareException(CompareException.INVALID_OBJECT_TYPE_ERROR, message)


def check_path(logger: Logger, value: object, name: str) -> str:
    """A path of a file or directory that is read or written."""
    path = path_text(value)
    if path is None:
        message = f"{name} should be the path of a file or directory, please check!"
        raise refuse(logger, CompareException.INVALID_PATH_ERROR, message)
    return path


def path_text(value: object) -> str | None:
    """The text of a path, ``None`` for what is no path."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return value if isinstance(value, str) and value and "\0" not in value else None


def check_bool(logger: Logger, name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    message = f"Invalid input parameter, {name} which should be only bool type."
    raise refuse(logger, CompareException.INVALID_PARAM_ERROR, message)


def check_suffix(logger: Logger, suffix: object) -> str:
    """What stands in the names of results before the time."""
    if suffix is None:
        return ""
    if isinstance(suffix, str) and "/" not in suffix and "\0" not in suffix:
        return suffix
    message = f"Invalid input parameter, suffix {suffix!r} should be a part of a file name."
    raise refuse(logger, CompareException.INVALID_PARAM_ERROR, message)


def check_stack(logger: Logger, path: object, stack_mode: bool) -> Choice:
    """Call stacks of a file that was named."""
    if not stack_mode:
        return False
    text = path_text(path)
    if text is None:
        message = f"The file path {path} does not exist."
        raise refuse(logger, FileCheckException.ILLEGAL_PATH_ERROR, message)
    return text


def data_mapping(value: object) -> str | dict[str, str] | None:
    """Row names that belong together: a yaml file, a dict, or nothing."""
    if value is None or value == {} or value == "":
        return None
    path = path_text(value)
    if path is not None:
        return path
    if isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(partner, str) for name, partner in value.items()
    ):
        return {str(name): str(partner) for name, partner in value.items()}
    kind = type(value).__name__ if not isinstance(value, dict) else "dict of something else"
    raise TypeError(f"data_mapping should be the path of a yaml file, a dict of names or None, not {kind}")


def mapping(name: str, value: object) -> Choice:
    """A mapping by built-in rules (``True``), by a yaml file, or none."""
    if value is None or value is False or value == {} or value == "":
        return False
    if value is True:
        return True
    path = path_text(value)
    if path is None:
        kind = type(value).__name__
        raise TypeError(f"{name} should be the path of a yaml file, or True for built-in rules, not {kind}")
    return path


def formats(logger: Logger, value: str | Iterable[str] | None, default: str) -> list[str]:
    """Kinds of files to write: names in a list, or in one text with commas between them."""
    if value is None:
        return [default]
    names = value.split(",") if isinstance(value, str) else value
    try:
        chosen = [str(name).strip() for name in names]
    except TypeError:
        chosen = []
    if chosen and all(name in FORMATS for name in chosen):
        return chosen
    message = f"Invalid input parameter, formats {value!r} should be some of {', '.join(FORMATS)}."
    raise refuse(logger, CompareException.INVALID_PARAM_ERROR, message)


def tolerance(logger: Logger, value: float | str | Mapping[str, float] | None) -> str:
    """What the verdict tolerates, as the command takes it: ``float32=0.001,bfloat16=0.02`` or one number."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if _is_number(value):
        return repr(value)
    if isinstance(value, Mapping) and all(_is_number(share) for share in value.values()):
        return ",".join(f"{name}={share!r}" for name, share in value.items())
    message = f"Invalid input parameter, tolerance {value!r} should be a number, a dict or a text."
    raise refuse(logger, CompareException.INVALID_PARAM_ERROR, message)


def noise(logger: Logger, value: object) -> list[str]:
    """Further runs of the bench side: a path, or a list of paths."""
    runs = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    return [check_path(logger, run, "noise") for run in runs]


def allow_incomplete(logger: Logger, value: str | Iterable[str] | None) -> str:
    """What may be left out of the comparison: names in a list, or in one text with commas between them."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return ",".join(str(name) for name in value)
    except TypeError:
        message = f"Invalid input parameter, allow_incomplete {value!r} should be a list of names or a text."
        raise refuse(logger, CompareException.INVALID_PARAM_ERROR, message) from None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def collect_options(
    logger: Logger,
    form: str,
    output_path: object,
    kwargs: Mapping[str, Any],
    *,
    stack: Choice,
    advisor: bool,
    log_rows: bool,
    mappings: Iterable[str],
) -> Options:
    """The options that every comparison of dumps has. Of the mappings, only those named are looked at."""
    chosen = {name: mapping(name, kwargs.get(name)) for name in mappings}
    return Options(
        form=form,
        output=check_path(logger, output_path, "output_path"),
        formats=formats(logger, kwargs.get("formats"), "xlsx" if form == "old" else "csv"),
        stack=stack,
        advisor=advisor,
        fuzzy=check_bool(logger, "fuzzy_match", kwargs.get("fuzzy_match", False)),
        api_mapping=chosen.get("api_mapping", False),
        cell_mapping=chosen.get("cell_mapping", False),
        layer_mapping=chosen.get("layer_mapping", False),
        data_mapping=data_mapping(kwargs.get("data_mapping")),
        log_rows=log_rows,
        first_difference=check_bool(logger, "first_diff_analyze", kwargs.get("first_diff_analyze", False))
        if form == "newest"
        else False,
        tolerance=tolerance(logger, kwargs.get("tolerance")),
        noise=noise(logger, kwargs.get("noise")),
        allow_incomplete=allow_incomplete(logger, kwargs.get("allow_incomplete")),
    )
