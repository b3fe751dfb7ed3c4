"""How values are told: what the recorded case value_types leaves out, each handed to a registered API."""

from __future__ import annotations

import json
import math
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.python.collection import runs

FP8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
FP8_VALUES = [1.5, -2.0, 0.25, 1.0]


def crc(tensor: Any) -> str:
    return f"{zlib.crc32(tensor.contiguous().numpy().tobytes()):08x}"


def stats(largest: float, smallest: float, mean: float | None, norm: float | None) -> dict[str, Any]:
    return {"Max": largest, "Min": smallest, "Mean": mean, "Norm": norm}


BIG = 2**60 + 1
# Not even rounded to float32.
EXACT = ("float64", "int", "uint")
RAMP = "91e79017"  # of the bytes of torch.arange(6.).reshape(2, 3)

# name: (what is handed over, what must be told of it)
VALUES: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        name: (
            f"torch.tensor({FP8_VALUES}).to(torch.{name})",
            {
                "dtype": f"torch.{name}",
                **stats(1.5, -2.0, 0.1875, math.sqrt(7.3125)),
                "md5": crc(torch.tensor(FP8_VALUES)),
            },
        )
        for name in FP8
    },
    "bfloat16 norm": (
        "torch.ones(1000, dtype=torch.bfloat16)",
        {"dtype": "torch.bfloat16", "md5": crc(torch.ones(1000)), **stats(1.0, 1.0, 1.0, math.sqrt(1000.0))},
    ),
    "bfloat16 mean": (
        "torch.tensor([1.0, 1.0078125], dtype=torch.bfloat16)",
        stats(1.0078125, 1.0, 1.00390625, math.hypot(1.0, 1.0078125)),
    ),
    "float16 norm": (
        "torch.full((100,), 60000.0, dtype=torch.float16)",
        {**stats(60000.0, 60000.0, 60000.0, 600000.0), "md5": crc(torch.full((100,), 60000.0).half())},
    ),
    "float16 mean": ("torch.tensor([2048.0, 1.0], dtype=torch.float16)", {"Mean": 1024.5}),
    "float64": (
        "torch.tensor([1e300, -1e-300], dtype=torch.float64)",
        stats(1e300, -1e-300, 5e299, 1e300),
    ),
    "float64 digits": ("torch.tensor([1/3, 0.0], dtype=torch.float64)", stats(1 / 3, 0.0, 1 / 6, 1 / 3)),
    "int64": (f"torch.tensor([{BIG}, {-BIG}])", stats(float(BIG), float(-BIG), 0.0, math.sqrt(2) * BIG)),
    "int64 of 0 dimensions": (f"torch.tensor({BIG})", {**stats(BIG, BIG, BIG, BIG), "shape": []}),
    "int32": ("torch.tensor([16777217, 0], dtype=torch.int32)", {"Max": 16777217.0, "Mean": 8388608.5}),
    "int8": ("torch.tensor([-128, 127], dtype=torch.int8)", stats(127.0, -128.0, -0.5, math.hypot(127, 128))),
    "uint16": (
        "torch.tensor([65535, 1], dtype=torch.uint16)",
        {**stats(65535.0, 1.0, 32768.0, math.hypot(65535, 1)), "dtype": "torch.uint16"},
    ),
    "uint32": (
        "torch.tensor([4294967295, 1], dtype=torch.uint32)",
        {**stats(4294967295.0, 1.0, 2147483648.0, math.hypot(4294967295, 1)), "dtype": "torch.uint32"},
    ),
    "conjugate": (
        "torch.tensor([1+2j, 3-4j]).conj()",
        {
            **stats(5.0, math.sqrt(5.0), (5.0 + math.sqrt(5.0)) / 2, None),
            "md5": crc(torch.tensor([1 - 2j, 3 + 4j])),
        },
    ),
    "negative": (
        "torch.tensor([1+2j, 3-4j]).conj().imag",
        {**stats(4.0, -2.0, 1.0, math.sqrt(20.0)), "md5": crc(torch.tensor([-2.0, 4.0]))},
    ),
    "checksum": ("torch.arange(6.).reshape(2, 3)", {"md5": RAMP}),
    "checksum of strides": (
        "torch.tensor([[0., 3.], [1., 4.], [2., 5.]]).t()",
        {"shape": [2, 3], "md5": RAMP},
    ),
    "checksum of bfloat16": ("torch.arange(6.).reshape(2, 3).bfloat16()", {"md5": RAMP}),
    "empty": (
        "torch.empty(0, 3)",
        {"shape": [0, 3], "Max": None, "Min": None, "Mean": None, "Norm": None, "md5": "00000000"},
    ),
    "expanded": ("torch.tensor([2.0]).expand(4)", {"shape": [4], **stats(2.0, 2.0, 2.0, 4.0)}),
    "leaf": ("torch.ones(2, requires_grad=True)", {"requires_grad": True}),
    "not a leaf": ("torch.ones(2, requires_grad=True) * 2", {"requires_grad": True, "Max": 2.0}),
    "parameter": ("nn.Parameter(torch.ones(2))", {"type": "torch.Tensor", "requires_grad": True}),
    "frozen parameter": ("nn.Parameter(torch.ones(2), requires_grad=False)", {"requires_grad": False}),
    "subclass": ("torch.ones(2).as_subclass(Own)", {"type": "torch.Tensor", "Max": 1.0}),
    "numpy float16": (
        "np.array([1.0, 2.0], dtype=np.float16)",
        {"type": "numpy.ndarray", "dtype": "float16", "shape": [2], "Max": 2.0, "Min": 1.0, "Mean": 1.5},
    ),
    "numpy reversed": ("np.arange(4.0)[::-1]", stats(3.0, 0.0, 1.5, math.sqrt(14.0))),
    "numpy of 0 dimensions": ("np.array(3.5)", {"shape": [], "Max": 3.5, "Min": 3.5}),
    "numpy big end first": ("np.array([1.0, 3.0], dtype='>f4')", {"Max": 3.0, "Min": 1.0}),
    "snapshot of 0 dimensions": ("keep(torch.tensor(1.0))", stats(1.0, 1.0, 1.0, 1.0)),
    "snapshot": ("keep(torch.ones(4))", stats(1.0, 1.0, 1.0, 2.0)),
    "snapshot of many": ("keep(torch.ones(1 << 20))", stats(1.0, 1.0, 1.0, 1024.0)),
}

SCRIPT = """\
import collections, dataclasses, types
import numpy as np

class Own(torch.Tensor):
    pass

Point = collections.namedtuple("Point", "x y")

@dataclasses.dataclass
class Rec:
    p: object
    q: object

kept = []
def keep(value):
    kept.append(value)
    return value

mod = types.ModuleType("values")
mod.probe = lambda *args, **kwargs: None
debugger.register_custom_api(mod, "probe", "Values")
debugger.start()
"""
AFTER = """
for value in kept:
    value.add_(5.0)
mod.probe(Point(torch.ones(1), [Rec(1, Point(2, "three"))]))
mod.probe(torch.eye(3).to_sparse(), torch.ones(2))
mod.probe(torch.eye(3).to_sparse_csr(), torch.ones(2))
mod.probe(torch.ones(2))
debugger.stop()
debugger.step()
result(torch.__version__)
"""


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> runs.Result:
    source = SCRIPT + "\n".join(f"mod.probe({value})" for value, _ in VALUES.values()) + AFTER
    settings = runs.config("L1", section={"list": ["Values"], "summary_mode": "md5"})
    return runs.run_script(tmp_path_factory.mktemp("values"), source, settings)


def told(probed: runs.Result, index: int) -> dict[str, Any]:
    record: dict[str, Any] = probed.ok().data()[f"Values.probe.{index}.forward"]
    return record


@pytest.mark.parametrize("name", VALUES)
def test_value(name: str, probed: runs.Result) -> None:
    value = told(probed, list(VALUES).index(name))["input_args"][0]
    tolerance = 1e-14 if name.startswith(EXACT) else 1e-6
    for key, expected in VALUES[name][1].items():
        if isinstance(expected, float):
            # Beyond what a float holds every digit is written, and Python reads an integer.
            assert type(value[key]) is float or abs(value[key]) > 2**53
            assert value[key] == pytest.approx(expected, rel=tolerance, abs=1e-300), key
        else:
            assert value[key] == expected, key


def test_keys(probed: runs.Result) -> None:
    value = told(probed, list(VALUES).index("checksum"))["input_args"][0]
    assert list(value) == ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad", "md5"]


def test_large_integers_in_full(probed: runs.Result) -> None:
    """The text has every digit, whatever a reader's float can hold."""
    probed.ok()
    text = (probed.path() / "dump.json").read_text()
    assert re.search(rf'"Max": {BIG}(\.0)?,', text)
    assert re.search(rf'"Min": {-BIG}(\.0)?,', text)


def test_containers(probed: runs.Result) -> None:
    value = told(probed, len(VALUES))["input_args"][0]
    assert list(value) == ["x", "y"]
    assert value["x"]["shape"] == [1]
    one, two, three = ({"type": kind, "value": it} for kind, it in (("int", 1), ("int", 2), ("str", "three")))
    assert value["y"] == [{"p": one, "q": {"x": two, "y": three}}]


def test_sparse(probed: runs.Result) -> None:
    """More of them is in test_odd_tensors."""
    for index in (len(VALUES) + 1, len(VALUES) + 2):
        record = told(probed, index)
        sparse, dense = record["input_args"]
        assert dense["Max"] == 1.0
        assert (sparse["dtype"], sparse["shape"]) == ("torch.float32", [3, 3])
        assert [sparse[key] for key in ("Max", "Min", "Mean")] == [1.0, 0.0, pytest.approx(1 / 3)]
    assert told(probed, len(VALUES) + 3)["input_args"][0]["Max"] == 1.0


def test_nothing_failed(probed: runs.Result) -> None:
    probed.ok()
    log = probed.path() / "dump_error_info.log"
    assert not log.exists(), log.read_text()


def test_saved_tensors(tmp_path: Path) -> None:
    """Contents are those at the time of the call, whatever the dtype and layout; the bits come back."""
    values = {
        "strided": "torch.arange(6.0).reshape(2, 3).t()",
        "bfloat16": "torch.tensor([1.0, float('nan')], dtype=torch.bfloat16)",
        "bool": "torch.tensor([True, False])",
        "complex": "torch.tensor([1+2j]).conj()",
        "scalar": "torch.tensor(7)",
        "empty": "torch.empty(0, 3)",
        "array": "np.arange(3, dtype=np.int16)",
    }
    source = SCRIPT + "\n".join(f"mod.probe(keep({value}))" for value in values.values())
    source += "\nfor value in kept:\n    value.fill(9) if isinstance(value, np.ndarray) else value.zero_()\n"
    source += "debugger.stop()\ndebugger.step()\n"
    result = runs.run_script(tmp_path, source, runs.config("L1", "tensor", {"list": ["Values"]})).ok()
    for index, value in enumerate(values.values()):
        name = f"Values.probe.{index}.forward.input.0.pt"
        assert result.data()[f"Values.probe.{index}.forward"]["input_args"][0]["data_name"] == name
        saved = torch.load(result.path() / "dump_tensor_data" / name)
        expected = eval(value, {"torch": torch, "np": np})
        expected = torch.as_tensor(expected).resolve_conj().contiguous()
        assert (saved.dtype, saved.shape) == (expected.dtype, expected.shape)
        assert saved.is_contiguous()
        assert torch.equal(saved.isnan(), expected.isnan())
        assert torch.equal(torch.nan_to_num(saved), torch.nan_to_num(expected))


def test_of_distributed(tmp_path: Path) -> None:
    result = runs.run_script(
        tmp_path,
        """\
        import types
        import torch.distributed as dist
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        mod = types.ModuleType("values")
        mod.probe = lambda *args, **kwargs: None
        debugger.register_custom_api(mod, "probe", "Values")
        debugger.start()
        mod.probe(dist.ReduceOp.SUM, dist.group.WORLD, op=dist.ReduceOp.PRODUCT, group=dist.new_group([0]))
        debugger.stop()
        debugger.step()
        dist.destroy_process_group()
        """,
        runs.config("L1", section={"list": ["Values"]}),
    ).ok()
    group = {"type": "torch.ProcessGroup", "group_ranks": [0], "group_id": f"{zlib.crc32(b'[0]'):08x}"}
    record = result.data(rank=0)["Values.probe.0.forward"]
    assert json.dumps(record["input_args"]) == json.dumps(
        [{"type": "torch.distributed.ReduceOp", "value": "RedOpType.SUM"}, group]
    )
    assert json.dumps(record["input_kwargs"]) == json.dumps(
        {"op": {"type": "torch.distributed.ReduceOp", "value": "RedOpType.PRODUCT"}, "group": group}
    )
