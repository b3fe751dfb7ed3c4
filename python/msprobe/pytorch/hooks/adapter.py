"""What Rust asks about PyTorch: kinds of values, tensors it cannot read itself, stacks, where to complain."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Callable

import torch
import torch.distributed as dist

from msprobe.core.collection.replacing import bare
from msprobe.core.collection.telling import (
    Told,
    group_id,
    is_numpy_scalar,
    plain_kind,
    told_numpy_scalar,
    told_slice,
)
from msprobe.core.collection.window import Window
from msprobe.core.framework import DeviceSketch, Form, Kind, Special
from msprobe.pytorch.framework import PYTORCH
from msprobe.pytorch.hooks import compiling, forms, frames, sketches
from msprobe.pytorch.hooks.window import is_mode_enabled, unseen

# What devices can reduce.
_DEVICE_INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
_MEMORY_FORMATS = {
    torch.contiguous_format: "contiguous_format",
    torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d",
    torch.preserve_format: "preserve_format",
}

_task: Callable[[], int] = torch._C._current_graph_task_id
# Not in old versions.
_node: Callable[[], Any] = getattr(torch._C, "_current_autograd_node", lambda: None)
_NEWEST = 2**64 - 1


def _team() -> tuple[int, int] | None:
    """Where PyTorch's threads are asked to work: ``GOMP_parallel`` and ``omp_get_max_threads``."""
    if "parallel backend: OpenMP" not in torch.__config__.parallel_info():
        return None
    try:
        # The very library PyTorch computes with: another package may have brought one of its own.
        library = ctypes.CDLL(str(Path(torch.__file__).with_name("lib") / "libtorch_cpu.so"))
        entries = library.GOMP_parallel, library.omp_get_max_threads
    except (OSError, AttributeError):
        return None
    parallel, threads = (ctypes.cast(entry, ctypes.c_void_p).value for entry in entries)
    return None if parallel is None or threads is None else (parallel, threads)


class Adapter(Told):
    """PyTorch's side of a collection, as ``msprobe.core.framework.Adapter`` asks for it."""

    framework = PYTORCH

    def __init__(self, window: Window, error_log: Callable[[], str | None], sketch: bool = False) -> None:
        # Asked for the tool's own sake, also where that is nobody's business.
        self.data_ptr = bare(torch.Tensor.data_ptr)
        self.stride = bare(torch.Tensor.stride)
        self.is_neg = bare(torch.Tensor.is_neg)
        self.is_conj = bare(torch.Tensor.is_conj)
        self.is_grad_enabled = torch.is_grad_enabled
        self.team = _team()
        self.register_hook = None
        self.unseen = unseen
        self.is_mode_enabled = is_mode_enabled
        super().__init__(error_log)
        self._window = window
        self._device_statistics: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._sketch = sketch
        self._device_sketches: list[sketches.Queued] = []
        self._wide_floats: dict[torch.device, torch.dtype] = {}
        self.border: Callable[[Any, int, int], bool] | None = None
        """Told about functions that returned an argument unchanged; says whether it takes over."""

    @staticmethod
    def running_node() -> int | None:
        """The sequence number of the autograd node that runs in this thread; None if autograd does not."""
        if _task() < 0:
            return None
        node = _node()
        return _NEWEST if node is None else int(node._sequence_nr())

    def kind(self, cls: type) -> Kind:
        """How values of a class are encoded."""
        return _kind(cls)

    def rare(self, value: Any, key: str | None) -> Any:
        """A value as plain dicts, lists and scalars."""
        if value is None:
            return None
        if key == "dtype":
            return {"type": "torch.dtype", "value": str(value)}
        if key == "device":
            return _device(value)
        if isinstance(value, slice):
            return told_slice(value)
        if isinstance(value, torch.device):
            return {}
        if isinstance(value, torch.memory_format):
            return {"type": "torch.memory_format", "format": _MEMORY_FORMATS.get(value, str(value))}
        if is_numpy_scalar(type(value)):
            return told_numpy_scalar(value)
        if dist.is_available():
            return _distributed(value)
        return None

    def special(self, tensor: Any) -> Special:
        """A subclass of a tensor, by what it holds in this process."""
        with self._quiet(), torch._C.DisableTorchFunctionSubclass():
            name = f"{type(tensor).__module__}.{type(tensor).__qualname__}"
            if name.endswith(".FakeTensor"):
                return Special(None, "torch.Tensor", None, [])
            if hasattr(tensor, "_local_tensor") and hasattr(tensor, "placements"):
                mesh = [int(rank) for rank in tensor.device_mesh.mesh.flatten().tolist()]
                return Special(_local(tensor), "torch.distributed.tensor.DTensor", mesh, _placements(tensor))
            if name.endswith(".AsyncCollectiveTensor"):
                return Special(tensor.wait().detach(), "torch.Tensor", None, [])
            if tensor.is_nested or not forms.has_memory(tensor):
                return Special(None, "torch.Tensor", None, [])
            return Special(forms.as_plain(tensor), "torch.Tensor", None, [])

    def form(self, tensor: torch.Tensor, whole: bool) -> Form:
        """What can be measured of a tensor that cannot be read where it lies."""
        with self._quiet():
            return forms.form_of(tensor, whole)

    def on_host(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The elements in host memory, laid out plainly; ``None`` for tensors that have none of their own."""
        if not _is_dense(tensor):
            return None
        with self._quiet():
            return tensor.detach().cpu().resolve_conj().resolve_neg()

    def measure_on_device(self, tensor: torch.Tensor) -> int | None:
        """Queues reductions on the tensor's own device, those of a sketch too. Nothing is waited for."""
        if not _is_dense(tensor) or not (tensor.is_floating_point() or tensor.dtype in _DEVICE_INTEGERS):
            return None
        with self._quiet():
            values, wide = tensor.detach(), self._wide(tensor.device)
            self._device_statistics.append(_queued_statistics(values, wide))
            if self._sketch:
                self._device_sketches.append(sketches.queue(values, wide))
        return len(self._device_statistics) - 1

    def _wide(self, device: torch.device) -> torch.dtype:
        """The widest floats a device computes with: not all of them know 64 bits."""
        wide = self._wide_floats.get(device)
        if wide is None:
            try:
                torch.linalg.vector_norm(torch.ones(1, device=device), dtype=torch.float64)
                wide = torch.float64
            except (RuntimeError, TypeError):
                wide = torch.float32
            self._wide_floats[device] = wide
        return wide

    def fetch(self) -> list[tuple[float, float, float, float]]:
        """Everything that was queued, with one transfer per device and dtype. Integers stay integers."""
        if not self._device_statistics:
            return []
        pending, self._device_statistics = self._device_statistics, []
        fetched: list[list[Any]] = [[] for _ in pending]
        with self._quiet():
            for part in (0, 1):
                kinds = dict.fromkeys((queued[part].device, queued[part].dtype) for queued in pending)
                for kind in kinds:
                    places = [
                        at
                        for at, queued in enumerate(pending)
                        if (queued[part].device, queued[part].dtype) == kind
                    ]
                    rows = torch.stack([pending[at][part] for at in places]).cpu().tolist()
                    for at, row in zip(places, rows):
                        fetched[at] += row
        return [(row[0], row[1], row[2], row[3]) for row in fetched]

    def fetch_sketches(self) -> list[DeviceSketch]:
        """The sums of all sketches that were queued."""
        pending, self._device_sketches = self._device_sketches, []
        with self._quiet():
            return sketches.fetch(pending)

    def describe_stack(self, frame: FrameType) -> tuple[list[str], bool]:
        return frames.describe_stack(frame)

    def is_compiled_code(self, code: CodeType) -> bool:
        return compiling.is_compiled_code(code)

    def _quiet(self) -> _Quiet:
        return _Quiet(self._window)


class _Quiet:
    """Inside, functions are called for the tool's own sake: they are not recorded and build no graph."""

    def __init__(self, window: Window) -> None:
        self._inside = window.inside
        self._no_grad = torch.no_grad()

    def __enter__(self) -> None:
        self._before = self._inside.api
        self._inside.api = True
        self._no_grad.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._no_grad.__exit__(*error)
        self._inside.api = self._before


def _kind(cls: type) -> Kind:
    if cls is torch.Tensor or cls is torch.nn.Parameter:
        return Kind.TENSOR
    if issubclass(cls, torch.Tensor):
        return Kind.SPECIAL_TENSOR
    # Subclasses of plain types that are told otherwise come first.
    for base, kind in ((torch.Size, Kind.SIZE), (torch.dtype, Kind.DTYPE)):
        if issubclass(cls, base):
            return kind
    plain = plain_kind(cls)
    if plain is not None:
        return plain
    if issubclass(cls, (torch.device, torch.memory_format)):
        return Kind.RARE
    if dist.is_available() and issubclass(cls, (dist.ProcessGroup, dist.P2POp, _reduce_ops())):
        return Kind.RARE
    return Kind.NULL


def _reduce_ops() -> tuple[type, ...]:
    return (dist.ReduceOp, dist.ReduceOp.RedOpType)


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether elements lie in memory, on whatever device, as they count."""
    return not tensor.is_meta and tensor.layout is torch.strided and not tensor.is_quantized


def _queued_statistics(values: torch.Tensor, wide: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Max and Min, exactly, and Mean and Norm, summed as widely as the device can."""
    if not values.is_floating_point():
        extremes = torch.stack([values.amax(), values.amin()]).long()
        values = values.to(wide)
    else:
        if values.element_size() == 1:
            # Reductions do not know floats of 8 bits.
            values = values.float()
        extremes = torch.stack([values.amax(), values.amin()]).to(wide)
    if values.dtype != torch.float64:
        return extremes, torch.stack([values.mean(dtype=wide), torch.linalg.vector_norm(values, dtype=wide)])
    # Here alone sums and squares can leave the range that the values have.
    largest = extremes.abs().amax()
    scale = torch.where(torch.isfinite(largest) & (largest > 0), largest, torch.ones_like(largest))
    values = values / scale
    return extremes, torch.stack([values.mean(), torch.linalg.vector_norm(values)]) * scale


def _device(value: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "torch.device"}
    if isinstance(value, torch.device):
        told["value"] = f"{value.type}:{value.index}"
    elif isinstance(value, (int, str)):
        told["value"] = value
    return told


def _local(tensor: Any) -> torch.Tensor:
    local: torch.Tensor = tensor._local_tensor
    if type(local) is not torch.Tensor:
        if hasattr(local, "wait"):
            local = local.wait()
        elif local.is_nested or not forms.has_memory(local):
            return local
        return forms.as_plain(local)
    return local.detach()


def _placements(tensor: Any) -> list[tuple[str, int | None, str | None]]:
    told: list[tuple[str, int | None, str | None]] = []
    for placement in tensor.placements:
        if placement.is_shard():
            told.append(("Shard", placement.dim, None))
        elif placement.is_replicate():
            told.append(("Replicate", None, None))
        else:
            told.append(("Partial", None, str(getattr(placement, "reduce_op", "sum"))))
    return told


def _distributed(value: Any) -> Any:
    if isinstance(value, dist.ProcessGroup):
        ranks = dist.get_process_group_ranks(value)
        return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": group_id(ranks)}
    if isinstance(value, dist.P2POp):
        group = value.group if value.group is not None else dist.group.WORLD
        return {
            "class_type": "torch.distributed.P2POp",
            "tensor": value.tensor,
            "op": value.op.__name__,
            "peer": value.peer,
            "tag": value.tag,
            "group_id": group_id(dist.get_process_group_ranks(group)),
        }
    if isinstance(value, _reduce_ops()):
        return {"type": "torch.distributed.ReduceOp", "value": str(value)}
    return None
