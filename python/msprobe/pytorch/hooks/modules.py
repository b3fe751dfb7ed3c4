"""Hooks of a model's modules: their calls, their backward passes and the gradients of their parameters."""

from __future__ import annotations

import contextlib
import sys
import threading
import types
import weakref
from typing import Any, Callable

import torch

from msprobe import _native
from msprobe.core.collection.window import Window
from msprobe.core.common.log import logger
from msprobe.pytorch.hooks import autograd
from msprobe.pytorch.hooks.window import is_compiling


class _Running(threading.local):
    """Calls this thread is inside of, outermost first."""

    def __init__(self) -> None:
        self.calls: list[tuple[ModuleHook, _native.ModuleCall, BaseException | None]] = []


class ModuleHooks:
    """All hooked modules of a run."""

    def __init__(self, collector: _native.Collector, window: Window) -> None:
        self.window = window
        self.native = _native.Modules(collector, window, autograd)
        self.running = _Running()
        self._hooked: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._models: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()

    def install(self, models: list[tuple[str, torch.nn.Module]]) -> None:
        """Hooks every module below the given ones, which are not recorded themselves. A model is gone through
        once, however often a window opens."""
        for prefix, model in models:
            if model in self._models:
                continue
            self._models.add(model)
            compiled: list[str] = []
            for name, module in model.named_modules():
                if any(name.startswith(path) for path in compiled):
                    # Hooks inside would be compiled too, or break the graph.
                    continue
                if _is_compiled(module) or _is_compiled_in_place(module):
                    compiled.append(f"{name}." if name else "")
                if module is model and _is_compiled(module):
                    # What is below the given root is the compiled module, and nothing else can be seen.
                    name = "_orig_mod"
                elif module is model or type(module).__name__ == "FullyShardedDataParallel":
                    continue
                self.hook(module, f"{prefix}{name}.{_class_name(module)}")

    def hook(self, module: torch.nn.Module, stem: str) -> ModuleHook | None:
        """Hooks one module, once."""
        if isinstance(module, torch.jit.ScriptModule):
            logger.warning(
                f"The module dump does not support {type(module)} type. "
                "The data dump for this module will be skipped."
            )
            return None
        if module in self._hooked:
            return None
        self._hooked.add(module)
        hook = ModuleHook(self, self.native.add(encodable(stem)), _is_compiled(module))
        if _is_compiled_in_place(module):
            # Its hooks are called from inside.
            module._compiled_call_impl = _CompiledCall(module, hook)
            return hook
        module.register_forward_pre_hook(hook.before, with_kwargs=True)
        module.register_forward_hook(hook.after, prepend=True, with_kwargs=True, always_call=True)
        return hook

    def is_hooked(self, module: torch.nn.Module) -> bool:
        return module in self._hooked

    def reset(self) -> None:
        """Forgets calls that never came back."""
        self.running.calls.clear()
        self.native.reset()


class ModuleHook:
    """The hooks of one module. They return nothing, so arguments and results stay what they are."""

    # A copy of a model, such as a reference model made from the actor, has copies of the hooks.
    is_copy = False

    def __init__(self, hooks: ModuleHooks, module: int, is_compiled: bool) -> None:
        self._hooks = hooks
        self._module = module
        self._is_compiled = is_compiled
        self._parameters: dict[str, _native.ParameterHook] = {}
        self.is_enabled = True

    def __deepcopy__(self, _: Any) -> ModuleHook:
        """Models are copied with their hooks; a copy is not recorded until it is hooked itself."""
        return _hook_of_a_copy()

    def __reduce__(self) -> Any:
        """Models are saved with their hooks, and loaded where there may be no msprobe: what takes the place
        of these takes anything and does nothing."""
        nothing = contextlib.nullcontext().__exit__
        return types.SimpleNamespace, (), {"before": nothing, "after": nothing, "is_copy": True}

    def before(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self.is_enabled or is_compiling():
            return
        hooks = self._hooks
        call = hooks.native.begin(self._module, args, kwargs)
        hooks.running.calls.append((self, call, sys.exc_info()[1]))

    def after(
        self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        if self.is_copy or is_compiling():
            return
        hooks = self._hooks
        calls = hooks.running.calls
        while calls:
            hook, call, error = calls.pop()
            if hook is self:
                break
            # Its forward was left by something no hook is told about.
            hooks.native.leave(call)
        else:
            return
        if not hooks.window.open or sys.exc_info()[1] is not error:
            hooks.native.leave(call)
            return
        # The shell of a compiled module has no parameters of its own.
        parameters = (module._orig_mod if self._is_compiled else module)._parameters
        hooks.native.end(call, args, kwargs, output, parameters, self._parameters, sys._getframe())


class _CompiledCall:
    """Calls a module that ``Module.compile`` has compiled, with our hooks around it."""

    def __init__(self, module: torch.nn.Module, hook: ModuleHook) -> None:
        self._module = weakref.ref(module)
        self._hook = hook
        self._compiled: Callable[..., Any] = module._compiled_call_impl

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module = self._module()
        if module is None:
            return self._compiled(*args, **kwargs)
        self._hook.before(module, args, kwargs)
        result = self._compiled(*args, **kwargs)
        self._hook.after(module, args, kwargs, result)
        return result


def _hook_of_a_copy() -> ModuleHook:
    hook = ModuleHook.__new__(ModuleHook)
    hook.is_copy = True
    hook.is_enabled = False
    return hook


def _is_compiled(module: torch.nn.Module) -> bool:
    return hasattr(module, "_orig_mod") and type(module).__name__ == "OptimizedModule"


def _is_compiled_in_place(module: torch.nn.Module) -> bool:
    return getattr(module, "_compiled_call_impl", None) is not None


def encodable(name: str) -> str:
    """A name that can be written: half of a surrogate pair stands as its number."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _class_name(module: torch.nn.Module) -> str:
    """The class as the user wrote it: ``fully_shard`` derives one of its own, a compiled module wraps it."""
    if _is_compiled(module):
        return _class_name(module._orig_mod)
    cls = type(module)
    if (
        cls.__name__.startswith("FSDP")
        and len(cls.__bases__) == 2
        and cls.__bases__[0].__name__ == "FSDPModule"
    ):
        return cls.__bases__[1].__name__
    return cls.__name__
