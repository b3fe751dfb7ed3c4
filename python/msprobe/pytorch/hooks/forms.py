"""Tensors whose elements do not lie in memory as they count: sparse, nested, quantised, wrapped.

What is measured of them is what they stand for. A sparse tensor is its values and zeros, coalesced; a nested
one is the elements of its parts; a quantised one is dequantised. Where that cannot be had, the reason takes
its place.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Callable

import torch

from msprobe.core.framework import Form

# Beyond this a sparse tensor is not made dense for a file or a checksum. Its statistics need no dense form.
MAX_DENSE_BYTES = 512 << 20
# A wrapper may hold another wrapper; more than this is a circle.
_MAX_WRAPPERS = 8

_base: Any = torch.Tensor.__base__
_no_dispatch: Callable[[], Any] = getattr(torch._C, "_DisableTorchDispatch", contextlib.nullcontext)
_functorch: Any = getattr(torch._C, "_functorch", None)
_SPARSE = {
    getattr(torch, name)
    for name in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
    if hasattr(torch, name)
}


class Unmeasurable(Exception):
    """The reason, in words."""


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor has elements of its own in memory, or needs none."""
    try:
        return bool(_base.data_ptr(tensor) != 0 or tensor.numel() == 0)
    except RuntimeError:
        return False


def as_plain(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of a subclass that has memory, as a tensor of no subclass. Code of the subclass is not run."""
    with _no_dispatch():
        return tensor.detach().as_subclass(torch.Tensor)


def form_of(tensor: torch.Tensor, whole: bool) -> Form:
    """What can be measured; never raises. ``whole``: also what belongs into a file."""
    try:
        with _no_modes(), torch._C.DisableTorchFunctionSubclass():
            return _form(tensor, whole)
    except Unmeasurable as reason:
        return Form(None, _shape(tensor), layout=_layout(tensor), unmeasured=str(reason))
    except Exception as error:
        text = str(error).strip().split("\n", 1)[0]
        why = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return Form(None, _shape(tensor), layout=_layout(tensor), unmeasured=why)


def _form(tensor: torch.Tensor, whole: bool) -> Form:
    kind = type(tensor).__qualname__
    if kind == "FakeTensor":
        raise Unmeasurable("a fake tensor has no elements")
    if tensor.is_nested:
        return _jagged(tensor) if hasattr(tensor, "_offsets") else _nested(tensor)
    if tensor.is_meta:
        # Nothing is left out: it has no elements.
        return Form(None, _shape(tensor), layout="meta")
    if tensor.layout in _SPARSE:
        return _sparse(tensor, whole)
    if _functorch is not None and _functorch.is_functorch_wrapped_tensor(tensor):
        plain = _inside_transform(tensor)
        return Form(plain, list(plain.shape), layout="torch.func")
    shape = [int(size) for size in tensor.shape]
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) and not has_memory(tensor):
        plain = _unwrapped(tensor)
        if list(plain.shape) != shape:
            raise Unmeasurable(f"{kind} of shape {shape} holds elements of shape {list(plain.shape)}")
        return Form(plain, shape, layout=kind)
    if tensor.is_quantized:
        return Form(tensor.detach().cpu().dequantize(), shape)
    if tensor.layout is not torch.strided:
        return Form(tensor.detach().to_dense().cpu(), shape, layout=str(tensor.layout))
    if not has_memory(tensor):
        raise Unmeasurable("its memory has been freed")
    try:
        # A dtype of which only the framework knows what its elements are.
        wide = torch.complex64 if tensor.dtype.is_complex else torch.float32
        return Form(tensor.detach().cpu().to(wide), shape)
    except (RuntimeError, NotImplementedError):
        raise Unmeasurable(f"elements of {tensor.dtype} cannot be read") from None


def _sparse(tensor: torch.Tensor, whole: bool) -> Form:
    host = tensor.detach().cpu()
    if host.layout is torch.sparse_coo:
        host = host.coalesce()
    values = host.values()
    shape = list(host.shape)
    count = math.prod(shape)
    size = count * host.element_size()
    too_large = None
    if size > MAX_DENSE_BYTES:
        too_large = f"its dense form of {size / 1e9:.1f} GB is not made for a file or a checksum"
    dense = host.to_dense() if whole and too_large is None else None
    return Form(values, shape, count - values.numel(), dense, too_large, str(tensor.layout))


def _jagged(tensor: Any) -> Form:
    values, lengths = tensor._values, tensor._lengths
    if lengths is not None or tensor._ragged_idx != 1:
        return _of_parts([_plain(part) for part in tensor.detach().unbind()], "nested torch.jagged")
    offsets = tensor._offsets.tolist()
    rest = [int(size) for size in values.shape[1:]]
    shapes = [[end - begin, *rest] for begin, end in zip(offsets, offsets[1:])]
    return Form(
        _plain(values),
        [int(size) for size in values.shape],
        layout="nested torch.jagged",
        parts=_json(shapes),
    )


def _nested(tensor: Any) -> Form:
    nested = tensor.detach()
    parts = nested.unbind() if nested.numel() or nested.size(0) else ()
    layout = "nested torch.strided"
    if parts and nested.is_contiguous():
        shapes = [list(part.shape) for part in parts]
        joined = _joined(shapes)
        return Form(nested.values().reshape(joined), joined, layout=layout, parts=_json(shapes))
    return _of_parts(list(parts), layout) if parts else Form(nested.values(), [0], layout=layout, parts="[]")


def _of_parts(parts: list[torch.Tensor], layout: str) -> Form:
    shapes = [list(part.shape) for part in parts]
    shape = _joined(shapes)
    plain = torch.cat([part.reshape(-1) for part in parts]) if parts else torch.empty(0)
    return Form(plain.reshape(shape), shape, layout=layout, parts=_json(shapes))


def _joined(shapes: list[list[int]]) -> list[int]:
    """The shape of joined parts: along their first dimension where all others agree, else of a list."""
    if shapes and shapes[0] and all(len(s) == len(shapes[0]) and s[1:] == shapes[0][1:] for s in shapes):
        return [sum(shape[0] for shape in shapes), *shapes[0][1:]]
    return [sum(math.prod(shape) for shape in shapes)]


def _json(shapes: list[list[int]]) -> str:
    return str([[int(size) for size in shape] for shape in shapes])


def _inside_transform(tensor: torch.Tensor) -> torch.Tensor:
    """What a transform of torch.func works on: for vmap, the elements of all examples."""
    for _ in range(64):
        if not _functorch.is_functorch_wrapped_tensor(tensor):
            return tensor
        tensor = _functorch.get_unwrapped(tensor)
    raise Unmeasurable("transforms of torch.func nested more than 64 deep")


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    if type(tensor) in (torch.Tensor, torch.nn.Parameter):
        return tensor
    return as_plain(tensor) if has_memory(tensor) else _unwrapped(tensor)


def _unwrapped(tensor: Any) -> torch.Tensor:
    """The elements a wrapper stands for, as far as it says what they are."""
    for _ in range(_MAX_WRAPPERS):
        if type(tensor) in (torch.Tensor, torch.nn.Parameter):
            return tensor
        if has_memory(tensor):
            return as_plain(tensor)
        tensor = _opened(tensor)
    raise Unmeasurable(f"wrappers of tensors nested more than {_MAX_WRAPPERS} deep")


def _opened(tensor: Any) -> Any:
    kind = type(tensor).__qualname__
    for method in ("dequantize", "to_dense"):
        if _defines(type(tensor), method):
            before = torch.get_rng_state()
            try:
                # The class's own functions may need what is switched off around this.
                with torch._C._EnableTorchFunction() if _can_enable else contextlib.nullcontext():
                    opened = getattr(tensor, method)()
            finally:
                if not torch.equal(before, torch.get_rng_state()):
                    torch.set_rng_state(before)
            if not isinstance(opened, torch.Tensor) or opened is tensor:
                raise Unmeasurable(f"{kind}.{method} returns no tensor of its elements")
            return opened
    inner = _inner(tensor)
    if inner is not None:
        return inner
    raise Unmeasurable(f"{kind} does not say what its elements are: it has neither dequantize nor to_dense")


def _inner(tensor: Any) -> torch.Tensor | None:
    """The only tensor inside a wrapper that knows nothing else: what the wrapper is follows from that one."""
    if not hasattr(tensor, "__tensor_flatten__"):
        return None
    names, context = tensor.__tensor_flatten__()
    if len(names) != 1 or (context is not None and context != () and context != {} and context != []):
        return None
    inner = getattr(tensor, names[0])
    same = isinstance(inner, torch.Tensor) and inner.shape == tensor.shape and inner.dtype == tensor.dtype
    return inner if same else None


def _defines(cls: type, method: str) -> bool:
    """Whether a class has a method that is not the one every tensor has."""
    for base in cls.__mro__:
        if base is torch.Tensor:
            return False
        if method in vars(base):
            return True
    return False


_can_enable = hasattr(torch._C, "_EnableTorchFunction")


def _no_modes() -> Any:
    """Modes of the user's do not see what is called for the tool's own sake."""
    try:
        from torch.utils._python_dispatch import _disable_current_modes
    except ImportError:
        return contextlib.nullcontext()
    return _disable_current_modes()


def _shape(tensor: Any) -> list[int]:
    """What is known of the shape of a tensor that cannot be measured."""
    try:
        return [_size(size) for size in tensor.shape]
    except Exception:
        pass
    try:
        return [_size(tensor.numel())]
    except Exception:
        return []


def _size(size: Any) -> int:
    """A size; of a symbolic one its hint, because asking for its value would fix it where it is traced."""
    return size if type(size) is int else int(size.node.hint)


def _layout(tensor: Any) -> str | None:
    try:
        return None if tensor.layout is torch.strided else str(tensor.layout)
    except Exception:
        return None
