"""TorchScript reads the source of functions: it has to find the originals, not what stands in their place."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Callable

import torch

from msprobe.core.collection.replacing import ByCode, Replacements


def make_scriptable(wrapper: Any, original: Any) -> None:
    """Lets TorchScript see the original in a wrapper it comes across: one imported by value, say."""
    wrapper.__prepare_scriptable__ = lambda: original
    try:
        operator = torch.jit._builtins._find_builtin(original)
        if operator is not None:
            torch.jit._builtins._register_builtin(wrapper, operator)
        dispatched = torch._jit_internal.boolean_dispatched
        if original in dispatched:
            dispatched[wrapper] = dispatched[original]
    except (AttributeError, TypeError):
        # Tables of the framework's own, which another version may keep elsewhere, by other keys.
        return


@contextlib.contextmanager
def without_our_hooks(value: Any) -> Iterator[None]:
    """Hides our hooks on a module while it is compiled: they would be compiled too, and cannot be."""
    modules = list(value.modules()) if isinstance(value, torch.nn.Module) else []
    hidden: list[tuple[Any, str, Any]] = []
    try:
        for module in modules:
            for name in ("_forward_pre_hooks", "_forward_hooks"):
                hooks = module.__dict__.get(name) or {}
                if any(map(_is_ours, hooks.values())):
                    hidden.append((module, name, hooks))
                    kept = ((key, hook) for key, hook in hooks.items() if not _is_ours(hook))
                    module.__dict__[name] = OrderedDict(kept)
        yield
    finally:
        for module, name, hooks in hidden:
            module.__dict__[name] = hooks


def _is_ours(hook: Any) -> bool:
    owner = type(getattr(hook, "__self__", hook))
    return owner.__module__.startswith("msprobe.")


def scriptable(replacements: Replacements) -> ByCode:
    """``torch.jit.script`` that finds functions and modules as they are without us."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def script(*args: Any, **kwargs: Any) -> Any:
            value = args[0] if args else kwargs.get("obj")
            # Scripting a function scripts what it calls, by calls of its own.
            with replacements.suspended(), without_our_hooks(value):
                return original(*args, **kwargs)

        return script

    return ByCode(torch.jit.script, wrap)
