"""What scripts hand to the debugger, checked before anything acts on it."""

from __future__ import annotations

from typing import Any

import torch

from msprobe.core.common.exceptions import MsprobeException
from msprobe.core.common.log import logger as core_logger
from msprobe.pytorch.log import logger

# Containers inside containers that `save` follows.
MAX_DEPTH = 50

_SAVED = (torch.Tensor, int, float, str)


def invalid(text: str) -> MsprobeException:
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def named_models(model: object) -> list[tuple[str, Any]]:
    """The modules to hook, each with what the names of its records begin with."""
    if isinstance(model, (list, tuple)) and model:
        return [(f"Module.{index}.", _module(item)) for index, item in enumerate(model)]
    if model is None or isinstance(model, (list, tuple)):
        raise invalid("missing the parameter 'model'")
    return [("Module.", _module(model))]


def _module(model: object) -> Any:
    if _is_module(model):
        return model
    raise invalid(
        "The 'model' parameter must be a torch.nn.Module or list[torch.nn.Module] type, "
        f"currently there is an unsupported {type(model)} type."
    )


def checked_token_range(token_range: object) -> tuple[int, int] | None:
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
    logger.error(text)
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


def checked_module_dump(module: object, dump_name: object) -> None:
    if not _is_module(module):
        raise invalid(
            f"module_dump takes a torch.nn.Module, currently there is an unsupported {type(module)} type."
        )
    if not isinstance(dump_name, str):
        raise invalid(
            f"the dump_name of module_dump must be a string, currently it is of type {type(dump_name)}."
        )


def can_save(variable: object, name: object, save_backward: object) -> bool:
    """Whether `save` can take this; if not, the log says why."""
    if not _is_saved(variable, MAX_DEPTH):
        core_logger.warning(
            f"PrecisionDebugger.save variable type not valid, should be one of {(*_SAVED, dict, tuple, list)}"
            "Skip current save process."
        )
        return False
    if not isinstance(name, str):
        core_logger.warning(
            "PrecisionDebugger.save name not valid, should be string. skip current save process."
        )
        return False
    if not isinstance(save_backward, bool):
        core_logger.warning(
            "PrecisionDebugger.save_backward name not valid, should be bool. Skip current save process."
        )
        return False
    return True


def _is_saved(variable: object, depth: int) -> bool:
    if isinstance(variable, _SAVED):
        return True
    if depth == 0:
        return False
    if isinstance(variable, (list, tuple)):
        return all(_is_saved(item, depth - 1) for item in variable)
    if isinstance(variable, dict):
        return all(isinstance(key, str) and _is_saved(item, depth - 1) for key, item in variable.items())
    return False


def _is_module(value: object) -> bool:
    # Hooks on a compiled module would not see its values.
    return isinstance(value, torch.nn.Module) and not isinstance(value, torch.jit.ScriptModule)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
