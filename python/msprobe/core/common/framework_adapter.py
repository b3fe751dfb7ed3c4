"""The framework a script uses, imported when something of it is first needed."""

from __future__ import annotations

from types import ModuleType
from typing import Any, ClassVar, NamedTuple

from msprobe.core.tensor import Described, describe

PYTORCH = "pytorch"
MINDSPORE = "mindspore"


class HostTensor(NamedTuple):
    """A tensor in host memory."""

    described: Described
    is_own: bool
    """Nobody else has this memory, so nobody will change it."""


class FmkAdp:
    """The framework in use: one for the whole process."""

    fmk: ClassVar[str] = PYTORCH
    supported_fmk: ClassVar[list[str]] = [PYTORCH, MINDSPORE]
    _framework: ClassVar[ModuleType | None] = None

    @classmethod
    def set_fmk(cls, fmk: str = PYTORCH) -> None:
        """Chooses the framework. Nothing is imported yet."""
        if fmk not in cls.supported_fmk:
            raise Exception(f"init framework adapter error, not in {cls.supported_fmk}")
        cls.fmk = fmk
        cls._framework = None

    @classmethod
    def import_framework(cls) -> ModuleType:
        """The framework's module."""
        if cls._framework is None:
            import importlib

            cls._framework = importlib.import_module("torch" if cls.fmk == PYTORCH else "mindspore")
        return cls._framework

    @classmethod
    def is_initialized(cls) -> bool:
        """Whether this process is one of several that train together."""
        framework: Any = cls.import_framework()
        if cls.fmk == PYTORCH:
            return bool(framework.distributed.is_available() and framework.distributed.is_initialized())
        return bool(framework.communication.GlobalComm.INITED)

    @classmethod
    def get_rank_id(cls) -> int:
        """The rank of this process; 0 while it is alone."""
        if not cls.is_initialized():
            return 0
        framework: Any = cls.import_framework()
        home = framework.distributed if cls.fmk == PYTORCH else framework.communication
        return int(home.get_rank())

    @classmethod
    def is_tensor(cls, value: Any) -> bool:
        """Whether a value is a tensor of the framework."""
        return isinstance(value, cls.import_framework().Tensor)

    @classmethod
    def on_host(cls, tensor: Any) -> HostTensor:
        """A tensor's elements in host memory, copied at most once, by the device they come from."""
        if cls.fmk == MINDSPORE:
            # The array may share the tensor's memory.
            return HostTensor(describe(tensor.asnumpy()), is_own=False)
        return _torch_on_host(cls.import_framework(), tensor)


def _torch_on_host(torch: Any, tensor: Any) -> HostTensor:
    plain = tensor if type(tensor) in (torch.Tensor, torch.nn.Parameter) else _plain(torch, tensor)
    is_own = not plain.is_cpu
    if is_own:
        plain = plain.detach().cpu()
    if plain.is_conj() or plain.is_neg():
        plain = plain.detach().resolve_conj().resolve_neg()
        is_own = True
    described = describe(plain)
    if described.address == 0 and plain.numel():
        raise TypeError(f"SingleSave: {type(tensor)} has no memory that could be saved")
    return HostTensor(described, is_own)


def _plain(torch: Any, tensor: Any) -> Any:
    """A tensor of a class of its own by what it holds in this process."""
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        if hasattr(tensor, "_local_tensor") and hasattr(tensor, "placements"):
            return _waited(tensor.to_local())
        return _waited(tensor).detach().as_subclass(torch.Tensor)


def _waited(tensor: Any) -> Any:
    """The result of a collective that may still be running."""
    return tensor.wait() if type(tensor).__name__ == "AsyncCollectiveTensor" else tensor
