"""What scripts hand to a debugger of any framework, checked before anything acts on it."""

from __future__ import annotations

from msprobe.core.common.exceptions import MsprobeException
from msprobe.core.common.log import Logger, logger

# Containers inside containers that `save` follows.
MAX_DEPTH = 50


def invalid(text: str) -> MsprobeException:
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def checked_token_range(token_range: object, log: Logger) -> tuple[int, int] | None:
    if token_range is None:
        return None
    if isinstance(token_range, (list, tuple)) and len(token_range) == 2 and all(map(_is_int, token_range)):
        first, last = token_range
        if 0 <= first <= last:
            return first, last
    text = (
        "token_range must be a list or tuple of two integers, the first token and the last, "
        f"with 0 <= first <= last; currently it is {token_range!r}"
    )
    log.error(text)
    raise invalid(text)


def checked_init_step(step: object) -> int:
    if not isinstance(step, int) or isinstance(step, bool):
        raise invalid(f"step must be an integer, currently it is of type {type(step).__name__}")
    if step < 0:
        raise invalid(f"step must not be negative, currently it is {step}")
    return step


def checked_custom_api(module: object, api: object, api_prefix: object) -> str:
    """The prefix of an API's records."""
    if not isinstance(api, str) or not hasattr(module, api):
        raise invalid(f"module {module} does not have {api}")
    if api_prefix is None:
        api_prefix = getattr(module, "__name__", "Custom")
    if not isinstance(api_prefix, str):
        raise invalid("api_prefix must be string")
    return api_prefix


def can_save(variable: object, name: object, save_backward: object, tensor: type) -> bool:
    """Whether `save` can take this; if not, the log says why. ``tensor`` is the framework's class."""
    saved = (tensor, int, float, str)
    if not _is_saved(variable, MAX_DEPTH, saved):
        logger.warning(
            f"PrecisionDebugger.save variable type not valid, should be one of {(*saved, dict, tuple, list)}"
            "Skip current save process."
        )
        return False
    if not isinstance(name, str):
        logger.warning("PrecisionDebugger.save name not valid, should be string. skip current save process.")
        return False
    if not isinstance(save_backward, bool):
        logger.warning(
            "PrecisionDebugger.save_backward name not valid, should be bool. Skip current save process."
        )
        return False
    return True


def _is_saved(variable: object, depth: int, saved: tuple[type, ...]) -> bool:
    if isinstance(variable, saved):
        return True
    if depth == 0:
        return False
    if isinstance(variable, (list, tuple)):
        return all(_is_saved(item, depth - 1, saved) for item in variable)
    if isinstance(variable, dict):
        return all(
            isinstance(key, str) and _is_saved(item, depth - 1, saved) for key, item in variable.items()
        )
    return False


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
