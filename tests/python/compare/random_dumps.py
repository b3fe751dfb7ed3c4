"""Random but valid pairs of dumps, for differential.py: one side made up, the other derived from it."""

from __future__ import annotations

import copy
import json
import math
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

Leaf = dict[str, Any]
Record = dict[str, Any]
Data = dict[str, Record]

FLOATS = ["torch.float32", "torch.float16", "torch.bfloat16", "torch.float64"]
OTHERS = ["torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8", "torch.bool"]
DTYPES = [*FLOATS * 3, *OTHERS, "torch.complex64"]
SHAPES = [[2, 3], [4], [1], [], [0], [2, 1, 3], [16, 8], [1, 6]]
NAMES = ["add", "matmul", "relu", "linear", "conv2d", "layer_norm", "softmax", "sum", "batch_norm", "cat"]
FAMILIES = ["Torch", "Functional", "Tensor", "NPU", "VF", "Distributed"]
MODULES = ["fc1.Linear", "layers.0.attn.Attention", "layers.1.mlp.MLP", "embed.Embedding", "norm.LayerNorm"]
WORDS = ["mean", "cpu", "npu:0", "abc", "torch.float16", "a b", "None"]


@dataclass
class Pair:
    """Two dumps and how to compare them."""

    mode: str
    fuzzy: bool
    file: str
    stack: bool
    mapping: dict[str, str]
    npu: Data
    bench: Data
    npu_tensors: dict[str, Any] = field(default_factory=dict)
    bench_tensors: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        task = "tensor" if self.mode == "tensor" else "statistics"
        for side, data, tensors in (
            ("npu", self.npu, self.npu_tensors),
            ("bench", self.bench, self.bench_tensors),
        ):
            home = folder / side
            home.mkdir(parents=True)
            document = {
                "task": task,
                "level": "mix",
                "framework": "pytorch",
                "dump_data_dir": None,
                "data": data,
            }
            (home / self.file).write_text(json.dumps(document))
            if self.mode == "tensor":
                (home / "dump_tensor_data").mkdir()
                for name, tensor in tensors.items():
                    torch.save(tensor, home / "dump_tensor_data" / name)
        if self.stack:
            names = [name for index, name in enumerate(self.npu) if index % 3]
            lines = [
                "File train.py, line 3, in step, \n loss = f(x)",
                "File train.py, line 9, in <module>, \n step()",
            ]
            stacks = {str(index): [[name], lines] for index, name in enumerate(names)}
            (folder / "npu" / "stack.json").write_text(json.dumps(stacks))
        if self.mapping:
            text = "".join(f"{ours}: {theirs}\n" for ours, theirs in self.mapping.items())
            (folder / "mapping.yaml").write_text(text)


class Generator:
    """Draws one pair from a seed."""

    def __init__(self, seed: int, modes: list[str], *, duplicates: bool) -> None:
        self.random = random.Random(seed)
        self.duplicates = duplicates
        self.mode = self.random.choice(modes)
        self.torch = torch.Generator().manual_seed(seed)

    # Leaves

    def number(self) -> float:
        value = self.random.gauss(0, 1) * 10 ** self.random.uniform(-6, 6)
        return float(torch.tensor(value, dtype=torch.float32)) if self.random.random() < 0.8 else value

    def statistics(self, dtype: str, shape: list[int]) -> Leaf:
        chance = self.random.random()
        if 0 in shape or chance < 0.02:
            return {"Max": None, "Min": None, "Mean": None, "Norm": None}
        if dtype == "torch.bool":
            return {"Max": True, "Min": chance < 0.5, "Mean": None, "Norm": None}
        if dtype not in FLOATS and dtype != "torch.complex64":
            least, most = sorted(self.random.randrange(100) for _ in range(2))
            return {"Max": most, "Min": least, "Mean": (least + most) / 2, "Norm": math.hypot(least, most)}
        low, middle, high = sorted(self.number() for _ in range(3))
        result: Leaf = {"Max": high, "Min": low, "Mean": middle, "Norm": math.hypot(low, middle, high)}
        if chance < 0.06:
            result[self.random.choice(["Max", "Min", "Mean", "Norm"])] = self.random.choice(
                [math.nan, math.inf, -math.inf]
            )
        elif chance < 0.10:
            result[self.random.choice(["Max", "Min"])] = 0.0
        return result

    def tensor(self) -> Leaf:
        dtype, shape = self.random.choice(DTYPES), list(self.random.choice(SHAPES))
        leaf = {"type": "torch.Tensor", "dtype": dtype, "shape": shape, **self.statistics(dtype, shape)}
        leaf["requires_grad"] = self.random.random() < 0.5
        if self.mode == "md5":
            leaf["md5"] = f"{self.random.getrandbits(32):08x}"
        return leaf

    def scalar(self) -> Leaf | None:
        pick = self.random.randrange(9)
        if pick == 0:
            return None
        if pick == 1:
            return {"type": "slice", "value": [None, self.random.randrange(5), None]}
        if pick == 2:
            return {"type": "torch.Size", "value": [2, self.random.randrange(5)]}
        if pick == 3:
            return {"type": "ellipsis", "value": "..."}
        if pick == 4:
            return {"type": "bool", "value": self.random.random() < 0.5}
        if pick == 5:
            return {"type": "str", "value": self.random.choice(WORDS)}
        if pick == 6:
            return {"type": "float", "value": self.number()}
        return {"type": "int", "value": self.random.randrange(-3, 9)}

    def value(self, depth: int = 0) -> Any:
        chance = self.random.random()
        if chance < 0.08 and depth < 3:
            return [self.value(depth + 1) for _ in range(self.random.randrange(3))]
        if chance < 0.14 and depth < 3:
            return {key: self.value(depth + 1) for key in self.random.sample(["a", "b", "mask", "0"], 2)}
        return self.tensor() if chance < 0.75 else self.scalar()

    # Records

    def record(self, *, backward: bool, parameters: bool) -> Record:
        values = [self.value() for _ in range(self.random.randrange(4))]
        outputs = [self.value() for _ in range(self.random.randrange(1, 3))]
        if backward:
            return {"input": values, "output": outputs}
        keys = self.random.sample(["dim", "group", "out", "weight"], self.random.choice([0, 0, 1, 2]))
        record: Record = {
            "input_args": values,
            "input_kwargs": {key: self.value() for key in keys},
            "output": outputs,
        }
        if self.duplicates and self.random.random() < 0.2 and values:
            record["input_kwargs"]["0"] = self.tensor()
        if parameters:
            record["parameters"] = {"weight": self.tensor(), "bias": self.tensor()}
        return record

    def data(self) -> Data:
        data: Data = {}
        calls: dict[str, int] = {}
        for _ in range(self.random.randrange(1, 25)):
            if self.random.random() < 0.3:
                stem = f"Module.{self.random.choice(MODULES)}"
                call = calls[stem] = calls.get(stem, -1) + 1
                with_parameters = self.random.random() < 0.6
                data[f"{stem}.forward.{call}"] = self.record(backward=False, parameters=with_parameters)
                if with_parameters and self.random.random() < 0.5 and f"{stem}.parameters_grad" not in data:
                    data[f"{stem}.parameters_grad"] = {"weight": [self.tensor()], "bias": [self.tensor()]}
                if self.random.random() < 0.4:
                    data[f"{stem}.backward.{call}"] = self.record(backward=True, parameters=False)
            else:
                stem = f"{self.random.choice(FAMILIES)}.{self.random.choice(NAMES)}"
                call = calls[stem] = calls.get(stem, -1) + 1
                data[f"{stem}.{call}.forward"] = self.record(backward=False, parameters=False)
                if self.random.random() < 0.4:
                    data[f"{stem}.{call}.backward"] = self.record(backward=True, parameters=False)
        return data

    def points(self) -> Data:
        """What PrecisionDebugger.save leaves: values of any shape under a name."""
        return {
            f"{name}{grad}.{call}.debug": self.value()
            for name in self.random.sample(["x", "y", "loss", "state"], 2)
            for grad in self.random.sample(["", "_grad"], self.random.randrange(1, 3))
            for call in range(self.random.randrange(1, 3))
        }

    # The other side

    def damage(self, leaf: Leaf) -> None:
        """Makes a leaf of the bench side differ, more or less."""
        chance = self.random.random()
        if "dtype" not in leaf:
            if chance < 0.2 and leaf["type"] in ("int", "float"):
                leaf["value"] = leaf["value"] + 1
            return
        if chance < 0.04:
            leaf["dtype"] = self.random.choice(DTYPES)
        elif chance < 0.08:
            leaf["shape"] = list(self.random.choice(SHAPES))
        elif chance < 0.5:
            scale = 1 + self.random.choice([1e-7, 1e-4, 1e-2, 0.2, 0.6, 3, -2]) * self.random.gauss(0, 1)
            for key in self.random.sample(["Max", "Min", "Mean", "Norm"], self.random.randrange(1, 5)):
                if isinstance(leaf[key], float):
                    leaf[key] *= scale
            if "md5" in leaf:
                leaf["md5"] = f"{self.random.getrandbits(32):08x}"
        elif chance < 0.54 and leaf["dtype"] in FLOATS:
            leaf[self.random.choice(["Max", "Min"])] = self.random.choice(
                [math.nan, math.inf, -math.inf, 0.0, 1e12]
            )

    def other(self, npu: Data, *, fuzzy: bool) -> Data:
        bench: Data = {}
        for name, record in npu.items():
            if self.random.random() < 0.06:
                continue
            changed = copy.deepcopy(record)
            for leaf in leaves(changed):
                self.damage(leaf)
            if self.random.random() < 0.05 and isinstance(changed, dict) and changed.get("output"):
                changed["output"].pop()
            parts = name.split(".")
            if fuzzy and self.random.random() < 0.5 and parts[-1] in ("forward", "backward"):
                parts[-2] = str(int(parts[-2]) + 100)
            bench[".".join(parts)] = changed
            if self.random.random() < 0.05 and "debug" not in name:
                bench[f"Torch.only_here.{len(bench)}.forward"] = self.record(backward=False, parameters=False)
        return bench

    def renamed(self, bench: Data) -> tuple[Data, dict[str, str]]:
        """The functions of the other side under other names, and the mapping of their plain arguments."""
        result: Data = {}
        mapping: dict[str, str] = {}
        for name, record in bench.items():
            if self.random.random() < 0.3 and name.endswith(".forward"):
                new = name.replace(".", ".mapped_", 1)
                result[new] = record
                for field_name, stem in (("input_args", "input"), ("output", "output")):
                    for index in range(len(record.get(field_name, []))):
                        mapping[f"{name}.{stem}.{index}"] = f"{new}.{stem}.{index}"
            else:
                result[name] = record
        return result, mapping

    def pair(self) -> Pair:
        fuzzy = self.mode == "tensor" and self.random.random() < 0.25
        debug = self.random.random() < 0.1
        npu = self.points() if debug else self.data()
        bench = self.other(npu, fuzzy=fuzzy)
        mapping: dict[str, str] = {}
        if not debug and not fuzzy and self.mode == "statistics" and self.random.random() < 0.15:
            bench, mapping = self.renamed(bench)
        file = "debug.json" if debug else "dump.json"
        made = Pair(self.mode, fuzzy, file, self.random.random() < 0.3, mapping, npu, bench)
        if self.mode == "tensor":
            self.save(made)
        return made

    # Tensor files

    def values(self, leaf: Leaf, seed: str) -> Any:
        """Elements that depend on the place of the leaf, so that both sides start out equal."""
        generator = torch.Generator().manual_seed(zlib.crc32(seed.encode()))
        dtype = getattr(torch, leaf["dtype"].removeprefix("torch."))
        base = torch.randn(leaf["shape"], generator=generator, dtype=torch.float64) * 3
        if dtype.is_floating_point or dtype.is_complex:
            return base.to(dtype)
        return base.abs().to(torch.int64).to(dtype)

    def spoil(self, tensor: Any) -> Any:
        chance = self.random.random()
        noise = torch.randn(tensor.shape, generator=self.torch, dtype=torch.float64)
        if tensor.dtype.is_floating_point:
            if chance < 0.3:
                scale = self.random.choice([1e-6, 1e-4, 3e-3, 0.1, 2, 1e11])
                return (tensor.double() * (1 + scale * noise)).to(tensor.dtype)
            if chance < 0.4 and tensor.numel():
                spoiled = tensor.clone().reshape(-1)
                bad = self.random.choice([math.nan, math.inf, -math.inf, 0.0])
                spoiled[self.random.randrange(tensor.numel())] = bad
                return spoiled.reshape(tensor.shape)
            if chance < 0.44:
                return torch.zeros_like(tensor)
        elif chance < 0.2 and not tensor.dtype.is_complex:
            return (tensor.double() + noise.abs() * 2).to(tensor.dtype)
        return tensor

    def save(self, pair: Pair) -> None:
        for data, tensors, spoil in (
            (pair.npu, pair.npu_tensors, False),
            (pair.bench, pair.bench_tensors, True),
        ):
            for name, record in data.items():
                for place, leaf in places(record, name):
                    if "dtype" not in leaf or self.random.random() < 0.02:
                        continue
                    seed = ".".join(part for part in place.split(".") if not part.isdecimal())
                    tensor = self.values(leaf, seed)
                    if spoil or self.random.random() < 0.05:
                        tensor = self.spoil(tensor)
                    leaf["data_name"] = f"{place}.pt"
                    leaf.update(measured(tensor))
                    if self.random.random() > 0.01:
                        tensors[leaf["data_name"]] = tensor


def measured(tensor: Any) -> Leaf:
    """The statistics a dump would have."""
    if not tensor.numel():
        return {"Max": None, "Min": None, "Mean": None, "Norm": None}
    if tensor.dtype == torch.bool:
        return {"Max": bool(tensor.max()), "Min": bool(tensor.min()), "Mean": None, "Norm": None}
    real = (tensor.abs() if tensor.dtype.is_complex else tensor).float()
    figures = {"Max": real.max(), "Min": real.min(), "Mean": real.mean(), "Norm": real.norm()}
    return {key: value.item() for key, value in figures.items()}


STEMS = {"input_args": "input", "input_kwargs": "input"}


def places(record: Any, name: str) -> Iterator[tuple[str, Leaf]]:
    """The leaves of a record with the row names they get."""
    fields = ("input_args", "input_kwargs", "input", "output", "parameters")
    if isinstance(record, dict) and any(key in record for key in fields):
        for key in fields:
            yield from _walk(record.get(key), f"{name}.{STEMS.get(key, key)}")
    else:
        yield from _walk(record, name)


def _walk(value: Any, name: str) -> Iterator[tuple[str, Leaf]]:
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, f"{name}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            # Gradients of parameters stand in lists of one, which add nothing to the name.
            yield from _walk(inner, name if ".parameters_grad" in name else f"{name}.{index}")


def leaves(record: Any) -> list[Leaf]:
    return [leaf for _, leaf in places(record, "")]
