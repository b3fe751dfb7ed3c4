"""Hooks of a model's modules: their calls, their backward passes and the gradients of their parameters."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import types
import weakref
from typing import Any, Callable

import torch

from msprobe import _native
from msprobe.core.common.log import logger
from msprobe.pytorch.hooks.gradient_flow import Call, report
from msprobe.pytorch.hooks.gradient_watch import Entry, GradientWatch
from msprobe.pytorch.hooks.window import Window, is_compiling, unseen

_at_end_of_backward: Callable[[Callable[[], None]], None] = (
    torch.autograd.Variable._execution_engine.queue_callback
)


class _Running(threading.local):
    """Calls this thread is inside of, outermost first."""

    def __init__(self) -> None:
        self.calls: list[tuple[ModuleHook, _native.ModuleCall, Entry | None, BaseException | None]] = []


class ModuleHooks:
    """All hooked modules of a run."""

    def __init__(self, collector: _native.Collector, window: Window) -> None:
        self.collector = collector
        self.window = window
        self._sink = _Sink(collector, window)
        self.watch = GradientWatch(self._sink)
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
        hook = ModuleHook(self, self.collector.add_module(encodable(stem)), _is_compiled(module))
        if _is_compiled_in_place(module):
            # Its hooks are called from inside.
            module._compiled_call_impl = _CompiledCall(module, hook)
            return hook
        module.register_forward_pre_hook(hook.before, with_kwargs=True)
        module.register_forward_hook(hook.after, prepend=True, with_kwargs=True, always_call=True)
        return hook

    def enter(self, args: tuple[Any, ...]) -> Entry | None:
        """Watches the gradients of a call; functions called for that are not recorded."""
        inside = self.window.inside
        before, inside.api = inside.api, True
        try:
            with unseen():
                return self.watch.enter(args)
        finally:
            inside.api = before

    def leave(self, entry: Entry, number: int, output: Any) -> None:
        inside = self.window.inside
        before, inside.api = inside.api, True
        try:
            with unseen():
                self.watch.leave(entry, number, output)
        finally:
            inside.api = before

    def is_hooked(self, module: torch.nn.Module) -> bool:
        return module in self._hooked

    def reset(self) -> None:
        """Forgets calls that never came back."""
        self.running.calls.clear()
        self._sink.reset()


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
        recording = hooks.window.open
        call = hooks.collector.module_begin(self._module, args, kwargs, recording)
        entry = hooks.enter(args) if recording else None
        hooks.running.calls.append((self, call, entry, sys.exc_info()[1]))

    def after(
        self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        if self.is_copy or is_compiling():
            return
        hooks = self._hooks
        calls = hooks.running.calls
        while calls:
            hook, call, entry, error = calls.pop()
            if hook is self:
                break
            # Its forward was left by something no hook is told about.
            hooks.collector.module_leave(call)
        else:
            return
        if not hooks.window.open or sys.exc_info()[1] is not error:
            hooks.collector.module_leave(call)
            return
        # The shell of a compiled module has no parameters of its own.
        parameters = (module._orig_mod if self._is_compiled else module)._parameters
        present = {encodable(name): value for name, value in parameters.items() if value is not None}
        if hooks.collector.module_end(call, args, kwargs, output, present, sys._getframe()):
            with unseen():
                self._watch_parameters(present)
        if entry is not None:
            hooks.leave(entry, call.number, output)

    def _watch_parameters(self, parameters: dict[str, torch.Tensor]) -> None:
        hooks = self._hooks
        for name, parameter in parameters.items():
            known = self._parameters.get(name)
            # Asked of the parameter: nothing may refer to it, not even weakly, if it is to be exchanged for
            # another one, as ``Module.to`` does.
            if not parameter.requires_grad or any(
                hook is known for hook in (parameter._backward_hooks or {}).values()
            ):
                continue
            known = hooks.collector.parameter_hook(self._module, encodable(name), hooks.window)
            parameter.register_hook(known)
            self._parameters[name] = known


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


class _Sink:
    """Passes what is learned about gradients to the collector."""

    def __init__(self, collector: _native.Collector, window: Window) -> None:
        self._collector = collector
        self._window = window
        self._tasks: set[int] = set()
        self.module_output_grad = collector.module_output_grad
        self.module_input_grad = collector.module_input_grad

    def module_backward_begin(self, call: Call, since: int) -> None:
        if call.task not in self._tasks:
            self._tasks.add(call.task)
            _at_end_of_backward(functools.partial(self._backward_over, call.task))
        self._collector.module_backward_begin(
            call.number,
            call.task,
            call.serial,
            call.begin_sequence,
            since,
            call.outputs,
            call.inputs,
            self._window.open,
        )

    def module_backward_complete(self, call: int) -> None:
        self._collector.module_backward_complete(call, self._window.open)

    def _backward_over(self, task: int) -> None:
        """Autograd calls this, and would take an exception for one of the model."""
        try:
            self._tasks.discard(task)
            self._collector.backward_over(task)
        except Exception as error:
            report(self, error)

    def reset(self) -> None:
        """Forgets runs of autograd that raised."""
        self._tasks.clear()

    def failed(self, error: BaseException) -> None:
        self._collector.report("backward_data_collect", "module", error)


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
