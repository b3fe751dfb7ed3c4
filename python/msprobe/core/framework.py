"""The seam to a framework: what the collector (Rust) asks the adapter of a framework, and nothing else.

An adapter answers about values it is shown; it computes nothing the collector can compute from memory. All of
PyTorch's answers are in ``msprobe.pytorch.hooks.adapter``, its words in ``msprobe.pytorch.framework``. The
other side of this contract is ``crates/python/src/collect/adapter.rs``.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any, Callable, NamedTuple, Protocol

from msprobe._native import Kind

__all__ = ["Adapter", "DeviceSketch", "Form", "Framework", "Kind", "Special", "Tensor"]


class Framework(NamedTuple):
    """What a framework calls its things in a dump and in a configuration."""

    name: str
    """In the head of ``dump.json``."""
    tensor_type: str
    """The type of a tensor in records."""
    size_type: str
    """The type of the sizes of a tensor."""
    tensor_format: str
    """Of tensor files: ``pt`` or ``npy``."""
    api_prefixes: tuple[str, ...] = ()
    """What the names of its functions begin with, where a scope of a configuration can begin or end."""
    foreign_keys: tuple[tuple[str, str], ...] = ()
    """Keys that configurations of other frameworks have, and whose they are."""
    tells_autograd: bool = True
    """Whether records say which tensors require gradients and which calls recompute."""
    tells_places: bool = True
    """Whether tensors have ``is_cpu``; if not, ``on_host`` is asked for the elements of each."""
    measures_singles: bool = False
    """Whether numbers are measured as 32-bit floats. Complex numbers then have a norm."""


class Tensor(Protocol):
    """What is read of a value of ``Kind.TENSOR``, besides what the adapter's functions say: ``requires_grad``
    and ``is_cpu`` only if the framework tells such things."""

    @property
    def dtype(self) -> Any:
        """An object that lives as long as the framework; its text is the dtype in records."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def requires_grad(self) -> bool: ...
    @property
    def is_cpu(self) -> bool:
        """Whether the elements are in host memory."""

    @property
    def _version(self) -> int:
        """Counts changes in place. A tensor without it is measured anew each time."""


class Special(NamedTuple):
    """A tensor of a class of its own."""

    plain: Any
    """The elements this process holds, as a value of ``Kind.TENSOR``; none if ``form`` is to say."""
    kind: str
    """Its type in records."""
    mesh: list[int] | None
    """Ranks of its device mesh, if it is distributed."""
    placements: list[tuple[str, int | None, str | None]]
    """One for each dimension of the mesh: kind, dimension, reduction."""


class Form(NamedTuple):
    """What can be measured of a tensor whose elements do not lie in memory as they count."""

    plain: Any
    """Its elements, laid out plainly; none if they cannot be had."""
    shape: list[int]
    """As it is recorded."""
    zeros: int = 0
    """Elements that are zero without being stored."""
    whole: Any = None
    """What files and checksums are of, where that is more than ``plain``; only if it was asked for."""
    too_large: str | None = None
    """Why there is no ``whole``."""
    layout: str | None = None
    """How the elements are kept, where that is not plainly."""
    parts: str | None = None
    """The shapes of the parts of a nested tensor, as JSON."""
    unmeasured: str | None = None
    """Why there is no ``plain``, unless there are no elements at all."""


class DeviceSketch(NamedTuple):
    """What a sketch is made of (``crates/tensor/src/stats/sketch``)."""

    shape: list[int]
    sums: list[float]
    """Sum of squares, 64 buckets, eighths of rows, eighths of columns; as far as the shape has them."""
    hash: int
    """As 64 bits with a sign."""


class Adapter(Protocol):
    """A framework's side of a collection."""

    @property
    def framework(self) -> Framework: ...
    @property
    def data_ptr(self) -> Callable[[Any], int]:
        """The address of the first element of a tensor in host memory."""

    @property
    def stride(self) -> Callable[[Any], tuple[int, ...]]:
        """In elements."""

    @property
    def is_neg(self) -> Callable[[Any], bool]:
        """Whether the elements are to be negated when read."""

    @property
    def is_conj(self) -> Callable[[Any], bool]:
        """Whether they are to be conjugated."""

    @property
    def is_grad_enabled(self) -> Callable[[], bool]: ...
    @property
    def unseen(self) -> Callable[[], Any]:
        """A context in which nobody sees what is asked of the framework for the tool's own sake."""

    @property
    def is_mode_enabled(self) -> Callable[[], bool]:
        """Whether somebody watches all that is asked of the framework, whatever the class of a tensor."""

    @property
    def team(self) -> tuple[int, int] | None:
        """Where ``GOMP_parallel`` and ``omp_get_max_threads`` are, if the framework computes with OpenMP."""

    @property
    def register_hook(self) -> Callable[[Any, Callable[[Any], None]], object] | None:
        """Has a function called with the gradient of a tensor, where the tensor's own ``register_hook`` wants
        something else of it; such a hook stays with a parameter."""

    @property
    def border(self) -> Callable[[Any, int, int], bool] | None:
        """Told of functions that returned an argument unchanged; says whether it takes over the gradient."""

    def kind(self, cls: type, /) -> Kind:
        """How values of a class are encoded. Asked once for each class."""

    def rare(self, value: Any, key: str | None, /) -> Any:
        """A value as plain dicts, lists and scalars, to be written as they are."""

    def special(self, tensor: Any, /) -> Special:
        """A subclass of a tensor, by what it holds in this process."""

    def form(self, tensor: Any, whole: bool, /) -> Form:
        """What can be measured of a tensor that cannot be read where it lies."""

    def on_host(self, tensor: Any, /) -> Any:
        """The elements in host memory, laid out plainly; none if it has none of its own.

        What is returned has a ``dtype``, which may be wider; ``data_ptr`` and ``stride`` take it.
        """

    def measure_on_device(self, tensor: Any, /) -> int | None:
        """Starts computing statistics on the tensor's device; what :meth:`fetch` has at that place later."""

    def fetch(self) -> list[tuple[float, float, float, float]]:
        """Max, Min, Mean and Norm of all that was started since the last time."""

    def fetch_sketches(self) -> list[DeviceSketch]:
        """What sketches are made of, of all that :meth:`fetch` has; asked before it if they are wanted."""

    def describe_stack(self, frame: FrameType, /) -> tuple[list[str], bool]:
        """The frames of a stack as they are written, and whether it recomputes activations."""

    def is_compiled_code(self, code: CodeType, /) -> bool:
        """Whether code is the way into what the framework has compiled."""

    def running_node(self) -> int | None:
        """The number of the autograd node that runs in this thread; none if autograd does not."""

    def tell(self, notices: list[tuple[bool, str]], /) -> None:
        """Logs: whether each is a warning, and its text."""

    def failed(self, phase: str, name: str, error: BaseException, /) -> None:
        """Something could not be recorded."""
