"""Random dumps of a level that records modules, as two runs of several ranks would leave them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

Json = dict[str, Any]

APIS = [
    "Torch.add",
    "Torch.mul",
    "Tensor.view",
    "Functional.linear",
    "Functional.relu",
    "Torch.empty_like",
    "NPU.npu_fusion",
]
CLASSES = ["Linear", "Block", "Mlp", "LayerNorm"]
SHAPES = [[2, 3], [4], [1], [2, 2, 2], []]


class Maker:
    """One dump. The same seed gives the same calls; a second dump changes some of their values."""

    def __init__(self, seed: int, rank: int, changes: random.Random | None, mode: str) -> None:
        self.random = random.Random(seed)
        self.changes = changes
        self.mode = mode
        self.rank = rank
        self.counts: dict[str, int] = {}
        self.construct: Json = {}
        self.data: Json = {}
        self.stack: Json = {}
        self.files: dict[str, tuple[list[int], list[float]]] = {}

    def number(self) -> float | int:
        kind = self.random.random()
        if kind < 0.05:
            value: float = 0.0
        elif kind < 0.1:
            value = self.random.choice([1e-7, -3.25e-9, 1e20, 123456.7890123])
        else:
            value = self.random.uniform(-5, 5)
        if self.changes and self.changes.random() < 0.2:
            value *= self.changes.choice([1.0001, 1.2, 2.0, -1.0, 1.0 + 1e-9])
        if self.changes and self.changes.random() < 0.02:
            value = self.changes.choice([math.nan, math.inf, -math.inf])
        return value

    def tensor(self) -> Json:
        shape = self.random.choice(SHAPES)
        if self.changes and self.changes.random() < 0.03:
            shape = [7]
        leaf: Json = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape}
        if self.mode != "structure":
            leaf |= {key: self.number() for key in ("Max", "Min", "Mean", "Norm")}
        leaf["requires_grad"] = self.random.random() < 0.5
        if self.mode == "md5":
            leaf["md5"] = f"{self.random.randrange(1 << 32):08x}"
            if self.changes and self.changes.random() < 0.1:
                leaf["md5"] = "00000001"
        return leaf

    def value(self) -> Any:
        kind = self.random.random()
        if kind < 0.75:
            return self.tensor()
        if kind < 0.8:
            return None
        if kind < 0.85:
            return {"type": "int", "value": self.random.randrange(5)}
        if kind < 0.88:
            return {"type": "str", "value": self.random.choice(["None", "it's", "sum"])}
        if kind < 0.9:
            return {"type": "torch.Size", "value": [2, 3]}
        if kind < 0.92:
            return {"type": "slice", "value": [None, 2, None]}
        if kind < 0.95:
            return {"type": "float", "value": self.random.uniform(0, 1)}
        return [self.tensor(), self.tensor()]

    def record(self, name: str, *, parameters: bool = False) -> None:
        body: Json = {
            "input_args": [self.value() for _ in range(self.random.randrange(4))],
            "input_kwargs": {"k": self.value()} if self.random.random() < 0.3 else {},
            "output": [self.value() for _ in range(self.random.randrange(1, 3))],
        }
        if parameters and self.random.random() < 0.6:
            body["parameters"] = {"weight": self.tensor(), "bias": self.tensor()}
        if self.mode == "tensor":
            self.save_tensors(name, body)
        if self.mode != "structure":
            self.data[name] = body
        if self.random.random() < 0.9:
            called = name.split(".")[-4] if name.count(".") > 3 else "f"
            self.stack[name] = [
                "File a.py, line 1, in api_function, \n api_template(x)",
                f"File model.py, line {len(self.stack)}, in forward, \n self.{called}(x)",
                "File train.py, line 9, in <module>, \n main()",
            ][self.random.randrange(2) :]

    def save_tensors(self, name: str, body: Json) -> None:
        """Gives each tensor a file, as a dump of real data has them."""
        places = [(f"input.{at}", value) for at, value in enumerate(body["input_args"])]
        places += [(f"input.{key}", value) for key, value in body["input_kwargs"].items()]
        places += [(f"output.{at}", value) for at, value in enumerate(body["output"])]
        places += [(f"parameters.{key}", value) for key, value in body.get("parameters", {}).items()]
        for place, value in places:
            nested = (
                [(f"{place}.{at}", one) for at, one in enumerate(value)] if isinstance(value, list) else []
            )
            for full, leaf in nested or [(place, value)]:
                if leaf and leaf["type"] == "torch.Tensor":
                    leaf["data_name"] = f"{name}.{full}.pt"
                    size = math.prod(leaf["shape"])
                    self.files[leaf["data_name"]] = (
                        leaf["shape"],
                        [float(self.number()) for _ in range(size)],
                    )

    def write_tensors(self, directory: Path) -> None:
        import torch

        directory.mkdir()
        for name, (shape, elements) in self.files.items():
            torch.save(torch.tensor(elements, dtype=torch.float32).reshape(shape), directory / name)

    def api(self, parent: str | None, *, backward: bool) -> None:
        name = self.random.choice(APIS)
        number = self.counts.get(name, 0)
        self.counts[name] = number + 1
        full = f"{name}.{number}.forward"
        self.construct[full] = parent
        self.record(full)
        if backward and self.random.random() < 0.6:
            self.later.append(
                (f"{name}.{number}.backward", None if self.random.random() < 0.5 else "?", parent)
            )

    def module(self, path: str, parent: str | None, depth: int) -> None:
        cls = self.random.choice(CLASSES)
        stem = f"Module.{path}.{cls}"
        number = self.counts.get(stem, 0)
        self.counts[stem] = number + 1
        full = f"{stem}.forward.{number}"
        for child in range(self.random.randrange(4)):
            if depth < 3 and self.random.random() < 0.5:
                self.module(f"{path}.m{child}", full, depth + 1)
            else:
                self.api(full, backward=True)
        self.construct[full] = parent
        self.record(full, parameters=True)
        back = f"{stem}.backward.{number}"
        self.later.append((back, None if self.random.random() < 0.7 else "?", parent))
        if self.random.random() < 0.5 and self.mode != "structure":
            self.gradients.append(f"{stem}.parameters_grad")

    def make(self, directory: Path) -> None:
        for _ in range(self.random.randrange(1, 3)):
            self.later: list[tuple[str, str | None, str | None]] = []
            self.gradients: list[str] = []
            for top in range(self.random.randrange(1, 3)):
                self.module(f"net{top}", None, 0)
                for _ in range(self.random.randrange(4)):
                    self.api(None, backward=False)
            for name, parent, forward_parent in reversed(self.later):
                back = (
                    forward_parent.replace("forward", "backward")
                    if forward_parent and parent == "?"
                    else None
                )
                self.construct[name] = back
                self.record(name)
            for name in self.gradients:
                self.data.setdefault(name, {"weight": [self.tensor()], "bias": [self.tensor()]})
        task = self.mode if self.mode in ("structure", "tensor") else "statistics"
        directory.mkdir(parents=True)
        if self.mode == "tensor":
            self.write_tensors(directory / "dump_tensor_data")
        for file, content in (
            ("construct.json", self.construct),
            ("stack.json", self.stack),
            (
                "dump.json",
                {
                    "task": task,
                    "level": "mix",
                    "framework": "pytorch",
                    "dump_data_dir": None,
                    "data": self.data,
                },
            ),
        ):
            (directory / file).write_text(json.dumps(content))

    def communicate(self, peers: int) -> None:
        """What ranks say to each other: together, and from each to the next."""
        group = {"type": "torch.ProcessGroup", "group_ranks": list(range(peers)), "group_id": "g"}
        after, before = (self.rank + 1) % peers, (self.rank - 1) % peers
        calls: list[tuple[str, Json]] = [
            ("all_reduce", {"group": group}),
            ("send", {"dst": {"type": "int", "value": after}}),
            ("recv", {"src": {"type": "int", "value": before}}),
            ("all_reduce", {"group": group}),
        ]
        for number, (function, arguments) in enumerate(calls):
            name = f"Distributed.{function}.{number // 3}.forward"
            sender = before if function == "recv" else self.rank
            numbers = dict.fromkeys(("Max", "Min", "Mean", "Norm"), float(sender + 1))
            tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], **numbers}
            tensor["requires_grad"] = False
            if self.mode == "md5":
                tensor["md5"] = f"{sender:08x}"
            self.construct[name] = None
            self.data[name] = {"input_args": [tensor], "input_kwargs": arguments, "output": [tensor]}


def write_pair(root: Path, seed: int) -> tuple[Path, Path, str]:
    """Two dumps that are mostly alike, and what they hold. Some are of two ranks that talk to each other."""
    mode = "tensor" if seed % 7 == 3 else ["summary", "summary", "md5", "structure"][seed % 4]
    target, golden = root / "target", root / "golden"
    has_ranks = seed % 6 == 5 and mode in ("summary", "md5")
    for rank in range(2 if has_ranks else 1):
        changes = random.Random(seed + 1_000_000)
        for side, changed in ((target, changes), (golden, None)):
            maker = Maker(seed + rank, rank, changed, mode)
            if has_ranks:
                maker.communicate(2)
            maker.make(side / f"rank{rank}" if has_ranks else side)
    return target, golden, mode
