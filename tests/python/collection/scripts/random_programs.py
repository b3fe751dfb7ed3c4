"""Random programs, collected at a random level and task: odd values in odd places under odd names.

Usage: ``random_programs SEEDS PROGRAMS``: for each seed of ``SEEDS`` (``3,4,5``) a forked process collects so
many programs into ``SEED/dump``, a step each. Prints how many seeds failed, with the traceback of each.
"""

from __future__ import annotations

import collections
import dataclasses
import faulthandler
import json
import os
import random
import sys
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

warnings.simplefilter("ignore")

# Words that mean something in a dump, as keyword, key, field, module and parameter names.
WORDS = [
    *("requires_grad", "shape", "type", "dtype", "value", "md5", "data_name", "Max", "Min", "Mean", "Norm"),
    *(
        "input",
        "output",
        "kwargs",
        "input_args",
        "input_kwargs",
        "parameters",
        "parameters_grad",
        "data",
        "0",
    ),
    *("forward", "backward", "device", "unmeasured", "layout", "parts", "class_type", "op", "peer", "tensor"),
    *("is_recompute", "group_ranks", "weight", "x", "none", "debug", "Shard", "placements", "größe", "名字"),
    *("a/b", "a b", "=1+1", "%s", "\\", '"', "x" * 300),
]
NAN, INF = float("nan"), float("inf")
NUMBERS: list[Any] = [0, 1, -1, 2**53 + 1, -(2**63), 2**63, 2**64 + 1, 10**40, 0.0, -0.0, 0.1, 1e-320]
NUMBERS += [1e300, NAN, INF, -INF, True, False, 1 + 2j, complex(NAN, 0)]
TEXTS = [
    "",
    "a",
    "None",
    "nan",
    "torch.float32",
    "=cmd()",
    "-1",
    "\x1b[31m",
    "\n",
    "\\u0000",
    "é",
    "😀",
    "\ud800",
]
OBJECTS: list[Any] = [None, ..., slice(1, None, 2), torch.float16, torch.device("cpu"), torch.Size([2, 3])]
OBJECTS += [object(), int, print, b"bytes", {1, 2}, range(3), torch.preserve_format]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8]
DTYPES += [torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn, torch.uint16]


@dataclasses.dataclass
class Data:
    dtype: Any
    value: Any = None
    type: Any = None


Pair = collections.namedtuple("Pair", "data md5")


class Own(torch.Tensor):  # type: ignore[misc]
    pass


class Passing(nn.Module):  # type: ignore[misc]
    """Hands on some of what it is given, in containers of any kind."""

    def __init__(self, make: Program, depth: int) -> None:
        super().__init__()
        self.make = make
        for name in make.draw.sample(WORDS, 2):
            if "." not in name and not hasattr(self, name) and name:
                self.register_parameter(name, nn.Parameter(torch.randn(3)))
        if depth:
            for name in make.draw.sample(WORDS, 2):
                if "." not in name and not hasattr(self, name) and name:
                    self.add_module(name, Passing(make, depth - 1))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        make = self.make
        for parameter in self.parameters(recurse=False):
            make.pool.append(parameter.mul(2.0))
        for module in self.children():
            if make.draw.random() < 0.7:
                module(*make.positional(), **make.keywords())
        for _ in range(make.draw.randrange(3)):
            make.operation()
        return make.draw.choice([make.value(2), make.tensor(), make.tensor(), args, kwargs])


class Program:
    def __init__(self, seed: str, root: nn.Module, probe: Any) -> None:
        self.draw = random.Random(seed)
        self.pool: list[torch.Tensor] = []
        self.probe = probe
        self.root = root
        for name in self.draw.sample(WORDS, 2):
            if "." not in name and name not in root._modules:
                root._modules[name] = Passing(self, self.draw.randrange(2))

    def run(self) -> None:
        for _ in range(self.draw.randint(3, 12)):
            step = self.draw.random()
            if step < 0.6:
                self.operation()
            elif step < 0.8:
                self.probe(*self.positional(), **self.keywords())
            else:
                module = self.draw.choice(list(self.root.children()))
                module(*self.positional(), **self.keywords())
        self.backward()

    def backward(self) -> None:
        losses = [
            tensor.float().sum()
            for tensor in self.pool
            if tensor.requires_grad and tensor.is_floating_point() and tensor.layout is torch.strided
        ]
        if losses and self.draw.random() < 0.8:
            torch.stack(losses).sum().backward()

    # ---- values

    def tensor(self) -> torch.Tensor:
        draw = self.draw
        if self.pool and draw.random() < 0.6:
            return draw.choice(self.pool)
        made = self.odd_tensor() if draw.random() < 0.2 else self.plain_tensor()
        self.pool.append(made)
        return made

    def plain_tensor(self) -> torch.Tensor:
        draw = self.draw
        shape = draw.choice([(), (0,), (3,), (2, 3), (3, 3), (2, 0, 3), (1, 2, 3), (1,), (5000,)])
        dtype = draw.choice(DTYPES) if draw.random() < 0.5 else torch.float32
        made = torch.randn(shape).mul(10)
        if draw.random() < 0.15 and made.numel():
            made.view(-1)[0] = draw.choice([NAN, INF, -INF])
        if dtype in (torch.uint8, torch.uint16, torch.int8, torch.int32, torch.int64):
            made = torch.nan_to_num(made, 0, 0, 0).abs()
        made = made.to(dtype)
        if draw.random() < 0.2 and made.dim() > 1:
            made = made.transpose(0, 1)
        if draw.random() < 0.1:
            made = made.as_subclass(Own)
        if dtype.is_floating_point and dtype is not torch.float8_e4m3fn and draw.random() < 0.5:
            made = made.detach().requires_grad_()
        return made

    def odd_tensor(self) -> torch.Tensor:
        parts = [torch.randn(self.draw.randint(1, 3), 3) for _ in range(2)]
        dense = torch.randn(3, 3).relu()
        kinds = {
            "coo": lambda: dense.to_sparse(),
            "uncoalesced": lambda: torch.sparse_coo_tensor([[0, 0]], [[1.0, 2], [3, 4]], (3, 2)),
            "csr": lambda: dense.to_sparse_csr(),
            "nested": lambda: torch.nested.nested_tensor(parts),
            "jagged": lambda: torch.nested.nested_tensor(parts, layout=torch.jagged),
            "quantised": lambda: torch.quantize_per_tensor(dense, 0.1, 0, torch.qint8),
            "conjugate": lambda: torch.randn(3, dtype=torch.complex64).conj(),
            "negative": lambda: torch.randn(3, dtype=torch.complex64).conj().imag,
            "expanded": lambda: torch.randn(1).expand(4),
        }
        return kinds[self.draw.choice(list(kinds))]()

    def value(self, depth: int) -> Any:
        draw = self.draw
        kind = draw.randrange(12 if depth else 7)
        if kind < 3:
            return self.tensor()
        if kind == 3:
            return draw.choice(NUMBERS)
        if kind == 4:
            return draw.choice(TEXTS)
        if kind == 5:
            return draw.choice(OBJECTS)
        if kind == 6:
            return self.array()
        if kind == 7:
            return [self.value(depth - 1) for _ in range(draw.randrange(4))]
        if kind == 8:
            return tuple(self.value(depth - 1) for _ in range(draw.randrange(4)))
        if kind == 9:
            keys: list[Any] = [*draw.sample(WORDS, draw.randrange(4)), *draw.sample([1, None, 2.5, True], 1)]
            return {key: self.value(depth - 1) for key in keys}
        if kind == 10:
            return Data(self.value(depth - 1), self.value(depth - 1), self.value(depth - 1))
        return Pair(self.value(depth - 1), self.value(depth - 1))

    def array(self) -> Any:
        import numpy as np

        choices = [np.arange(6.0).reshape(2, 3)[:, ::-1], np.float32(1.5), np.int64(2**60), np.bool_(True)]
        return self.draw.choice([*choices, np.array([True, False]), np.array(3), np.float64("nan")])

    def positional(self) -> list[Any]:
        return [self.value(2) for _ in range(self.draw.randrange(4))]

    def keywords(self) -> dict[str, Any]:
        return {name: self.value(2) for name in self.draw.sample(WORDS, self.draw.randrange(4))}

    # ---- operations

    def operation(self) -> None:
        """One function of torch on whatever is there. That it refuses is no failure."""
        draw, x, y = self.draw, self.tensor(), self.tensor()
        weight = torch.randn(3, 3, requires_grad=True)
        choices = [
            lambda: torch.relu(x),
            lambda: torch.add(x, y, alpha=2),
            lambda: x * draw.choice(NUMBERS),
            lambda: x.add_(1) if not x.requires_grad else x.add(1),
            lambda: torch.matmul(x, y),
            lambda: F.linear(x, weight),
            lambda: F.softmax(x, dim=-1, dtype=draw.choice([None, torch.float64])),
            lambda: F.layer_norm(x, x.shape[-1:]),
            lambda: F.dropout(x, p=0.5, training=draw.random() < 0.5),
            lambda: torch.cat([x, y], dim=0),
            lambda: torch.stack((x, x)),
            lambda: torch.max(x, dim=0),
            lambda: torch.topk(x, 1),
            lambda: torch.chunk(x, 2),
            lambda: torch.where(x > 0, x, y),
            lambda: x.sum(),
            lambda: x.masked_fill(x > 0, draw.choice([-INF, 0.0])),
            lambda: torch.einsum("...i,...i->...", x, y),
            lambda: F.embedding(torch.tensor([0, 2, 0]), weight, sparse=draw.random() < 0.5),
            lambda: x.to(draw.choice(DTYPES)),
            lambda: torch.clamp(x, min=draw.choice([None, 0]), max=draw.choice([1, 2**40])),
            lambda: x.reshape(-1),
            lambda: torch.sqrt(x),
            lambda: F.cross_entropy(weight, torch.tensor([0, 1, 2]), label_smoothing=draw.random()),
        ]
        try:
            made = draw.choice(choices)()
        except Exception:
            return
        results = made if isinstance(made, (tuple, list)) else [made]
        self.pool.extend(result for result in results if isinstance(result, torch.Tensor))


def settings(draw: random.Random) -> dict[str, Any]:
    task = draw.choice(["statistics", "statistics", "tensor", "overflow_check"])
    section: dict[str, Any] = {}
    if task == "overflow_check":
        section["overflow_nums"] = -1
    else:
        section["summary_mode"] = draw.choice(["statistics", "md5"])
        section["data_mode"] = [draw.choice(["all", "all", "forward", "backward", "input", "output"])]
    level = draw.choice(["L0", "L1", "mix"])
    return {"task": task, "dump_path": "./dump", "level": level, task: section}


def collect(seed: int, programs: int) -> None:
    # A program that hangs says where.
    faulthandler.dump_traceback_later(100, exit=True)
    folder = Path(str(seed))
    folder.mkdir()
    os.chdir(folder)
    draw = random.Random(seed)
    Path("config.json").write_text(json.dumps(settings(draw)))
    torch.manual_seed(seed)
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(config_path="./config.json")
    module = types.ModuleType("odd")
    module.__dict__["probe"] = lambda *args, **kwargs: args[:2]
    debugger.register_custom_api(module, "probe", "Odd")
    for step in range(programs):
        root = nn.Module()
        program = Program(f"{seed}/{step}", root, lambda *args, **kwargs: module.probe(*args, **kwargs))
        debugger.start(root)
        try:
            program.run()
        finally:
            debugger.stop()
            debugger.step()


def main() -> None:
    seeds, programs = [int(seed) for seed in sys.argv[1].split(",")], int(sys.argv[2])
    failed = 0
    for seed in seeds:
        # torch is loaded once; no debugger is there before the fork.
        child = os.fork()
        if child == 0:
            code = 1
            try:
                collect(seed, programs)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status != 0:
            failed += 1
            print(f"seed {seed} ended with status {status}", file=sys.stderr, flush=True)
    print("RESULT " + json.dumps(failed), flush=True)


if __name__ == "__main__":
    main()
