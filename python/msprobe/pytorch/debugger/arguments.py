"""What scripts hand to the debugger, checked before anything acts on it."""

from __future__ import annotations

from typing import Any

import torch

from msprobe.core.collection.arguments import invalid


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


def checked_module_dump(module: object, dump_name: object) -> None:
    if not _is_module(module):
        raise invalid(
            f"module_dump takes a torch.nn.Module, currently there is an unsupported {type(module)} type."
        )
    if not isinstance(dump_name, str):
        raise invalid(
            f"the dump_name of module_dump must be a string, currently it is of type {type(dump_name)}."
        )


def _is_module(value: object) -> bool:
    # Hooks on a compiled module would not see its values.
    return isinstance(value, torch.nn.Module) and not isinstance(value, torch.jit.ScriptModule)
