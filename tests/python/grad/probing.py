"""Models, configurations and recorded files for the tests of the gradient probe."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn

from msprobe.core import collect_config
from msprobe.pytorch.framework import PYTORCH
from msprobe.pytorch.grad_probe.grad_monitor import GradientMonitor

GOLDEN = Path(__file__).parents[2] / "golden" / "grad_probe"


def write_config(folder: Path, section: dict[str, Any] | None = None, **keys: Any) -> str:
    path = folder / "config.json"
    content = {"task": "grad_probe", "dump_path": str(folder / "out"), "grad_probe": section or {}, **keys}
    path.write_text(json.dumps(content))
    return str(path)


def monitor(folder: Path, section: dict[str, Any] | None = None, **keys: Any) -> GradientMonitor:
    return GradientMonitor(collect_config.resolve(PYTORCH, write_config(folder, section, **keys)))


def model_of(gradients: dict[str, Any]) -> nn.Module:
    """A model with a parameter per name, in this order, that has this gradient; ``None`` for one without."""
    model = nn.Module()
    for name, gradient in gradients.items():
        *path, last = name.split(".")
        inner = model
        for part in path:
            if part not in inner._modules:
                inner.add_module(part, nn.Module())
            inner = inner._modules[part]
        value = torch.zeros(1) if gradient is None else torch.zeros_like(gradient)
        inner.register_parameter(last, nn.Parameter(value))
    set_gradients(model, gradients)
    return model


def set_gradients(model: nn.Module, gradients: dict[str, Any]) -> None:
    for name, parameter in model.named_parameters():
        parameter.grad = gradients[name]


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.0)


def listing(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def rows(path: Path) -> list[dict[str, str]]:
    raw = path.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    assert raw.count(b"\n") == raw.count(b"\r\n")
    return list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"))))


def names(root: Path, step: int, rank: int = 0) -> list[str]:
    return [row["param_name"] for row in rows(root / f"rank{rank}/grad_summary_{step}.csv")]


def same_files(ours: Path, recorded: Path) -> None:
    """The same files with the same bytes; norms may differ by one in the last place of float32."""
    assert listing(ours) == listing(recorded)
    for name in listing(recorded):
        mine, theirs = (ours / name).read_bytes(), (recorded / name).read_bytes()
        if name.endswith(".csv") and mine != theirs:
            for row, other in zip(rows(ours / name), rows(recorded / name)):
                norm, expected = numpy.float32(row.pop("norm")), numpy.float32(other.pop("norm"))
                assert row == other
                assert abs(norm - expected) <= numpy.spacing(expected)
            assert mine.splitlines()[0] == theirs.splitlines()[0]
            assert len(mine.splitlines()) == len(theirs.splitlines())
        else:
            assert mine == theirs, name
