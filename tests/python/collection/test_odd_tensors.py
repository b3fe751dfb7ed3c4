"""Tensors that do not lie in memory as they count: what is recorded of them is what they stand for."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.python.collection import runs
from tests.python.collection.scripts.odd_tensors import PROGRAMS, SETTINGS

STATISTICS = ("Max", "Min", "Mean", "Norm")
MARKS = ("layout", "stored_dtype", "unmeasured")
NAMES = list(PROGRAMS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runs.Result]:
    root = tmp_path_factory.mktemp("odd_tensors")
    return runs.run_all(
        {
            mode: functools.partial(runs.run_worker, root / mode, "odd_tensors", mode)
            for mode in ("absent", *SETTINGS)
        }
    )


def leaves(value: Any, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        yield name, value
    elif isinstance(value, (dict, list)):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in members:
            yield from leaves(member, f"{name}.{key}")


def odd_leaves(result: runs.Result, step: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for record, value in result.data(step).items():
        found.update(leaves(value, record))
    return {name: leaf for name, leaf in found.items() if any(mark in leaf for mark in MARKS)}


@pytest.mark.parametrize("mode", SETTINGS)
def test_same_bits(mode: str, trained: dict[str, runs.Result]) -> None:
    assert trained[mode].ok().printed() == trained["absent"].ok().printed()
    assert not list(trained[mode].folder.rglob("dump_error_info.log"))


# No module is called inside of vmap; what held holds is not measured.
CASES = [
    (name, mode)
    for mode in SETTINGS
    for name in NAMES
    if name != "held" and not (name == "vmap" and mode.startswith("L0"))
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_a_difference_is_recorded(name: str, mode: str, trained: dict[str, runs.Result]) -> None:
    result = trained[mode].ok()
    step = NAMES.index(name)
    before, after = odd_leaves(result, step), odd_leaves(result, step + len(NAMES))
    assert before.keys() == after.keys()
    assert before, "nothing odd was recorded"
    differing = [place for place in before if before[place]["Norm"] != after[place]["Norm"]]
    assert differing
    for place, leaf in before.items():
        assert all(isinstance(leaf[key], float) for key in STATISTICS), (place, leaf)
        assert "unmeasured" not in leaf
        assert ("md5" in leaf) == mode.endswith("md5")
        assert ("data_name" in leaf) == mode.endswith("tensor")
    for place in differing:
        if mode.endswith("md5"):
            assert before[place]["md5"] != after[place]["md5"]
        elif mode.endswith("tensor"):
            tensors = [
                torch.load(result.path(at) / "dump_tensor_data" / leaf["data_name"])
                for at, leaf in ((step, before[place]), (step + len(NAMES), after[place]))
            ]
            for tensor, leaf in zip(tensors, (before[place], after[place])):
                assert list(tensor.shape) == leaf["shape"]
                assert tensor.max().item() == leaf["Max"]
            assert not torch.equal(*tensors)


@pytest.mark.parametrize("mode", SETTINGS)
def test_what_cannot_be_measured_is_named(mode: str, trained: dict[str, runs.Result]) -> None:
    result = trained[mode].ok()
    lines = [line for line in result.log if "could not be measured" in line]
    reason = "Held does not say what its elements are: it has neither dequantize nor to_dense"
    for times in (0, 1):
        found = odd_leaves(result, NAMES.index("held") + times * len(NAMES))
        assert found
        for leaf in found.values():
            assert leaf["unmeasured"] == reason
            assert [leaf[key] for key in STATISTICS] == [None] * 4
            assert "md5" not in leaf
            assert "data_name" not in leaf
        names = [place.replace(".input_args.", ".input.") for place in found]
        count = "1 value" if len(found) == 1 else f"{len(found)} values"
        assert f"[WARNING] {count} of this step could not be measured:" in lines[times]
        assert all(f"{name} ({reason})" in lines[times] for name in names)
    assert len(lines) == 2, "once per step, and only in steps that have any"


# name: (the tensor, what it stands for or why it cannot be measured, what else is told)
VALUES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "duplicates": (
        "torch.sparse_coo_tensor([[0, 0, 2]], [[1.0, -5], [3, 4], [5, 6]], (4, 2))",
        "torch.tensor([[4.0, -1], [0, 0], [5, 6], [0, 0]])",
        {"layout": "torch.sparse_coo", "shape": [4, 2]},
    ),
    "all below zero": (
        "torch.diag(-torch.ones(3)).to_sparse()",
        "torch.diag(-torch.ones(3))",
        {"Max": 0.0, "Min": -1.0},
    ),
    "all above zero": ("torch.eye(3).to_sparse()", "torch.eye(3)", {"Max": 1.0, "Min": 0.0}),
    "without zeros": ("torch.full((2, 2), -3.0).to_sparse()", "torch.full((2, 2), -3.0)", {"Max": -3.0}),
    "nothing stored": ("torch.zeros(2, 3).to_sparse()", "torch.zeros(2, 3)", {"Max": 0.0, "Norm": 0.0}),
    "sparse NaN": (
        "torch.tensor([0.0, float('nan'), 2.0]).to_sparse()",
        "torch.tensor([0.0, float('nan'), 2.0])",
        {},
    ),
    "sparse infinity": (
        "torch.tensor([0.0, float('-inf'), -2.0]).to_sparse()",
        "torch.tensor([0.0, float('-inf'), -2.0])",
        {"Max": 0.0},
    ),
    "sparse int64": (
        "torch.tensor([0, 2**60 + 1, 0, 3]).to_sparse()",
        "torch.tensor([0, 2**60 + 1, 0, 3])",
        {"Min": 0.0},
    ),
    "sparse bool": (
        "torch.tensor([True, False, True]).to_sparse()",
        "torch.tensor([True, False, True])",
        {"Max": True, "Min": False, "Mean": None, "Norm": None},
    ),
    "sparse complex": (
        "torch.tensor([0, 3 + 4j]).to_sparse()",
        "torch.tensor([0, 3 + 4j])",
        {"Max": 5.0, "Min": 0.0, "Mean": 2.5, "Norm": None},
    ),
    "sparse bfloat16": (
        "torch.tensor([[0, 1.5], [2.5, 0]], dtype=torch.bfloat16).to_sparse()",
        "torch.tensor([[0, 1.5], [2.5, 0]], dtype=torch.bfloat16)",
        {},
    ),
    "csr": ("torch.eye(3).mul(2).to_sparse_csr()", "torch.eye(3).mul(2)", {"layout": "torch.sparse_csr"}),
    "csc": ("torch.eye(3).mul(2).to_sparse_csc()", "torch.eye(3).mul(2)", {"layout": "torch.sparse_csc"}),
    "bsr": (
        "torch.diag(-2 * torch.ones(4)).to_sparse_bsr((2, 2))",
        "torch.diag(-2 * torch.ones(4))",
        {"layout": "torch.sparse_bsr", "Max": 0.0},
    ),
    "empty": ("torch.zeros(0, 3).to_sparse()", "torch.zeros(0, 3)", {"Max": None, "shape": [0, 3]}),
    "requires grad": ("torch.eye(2).to_sparse().requires_grad_()", "torch.eye(2)", {"requires_grad": True}),
    "nested": (
        "torch.nested.nested_tensor([torch.ones(2, 3), -2 * torch.ones(1, 3)])",
        "torch.tensor([[1.0] * 3, [1.0] * 3, [-2.0] * 3])",
        {"shape": [3, 3], "parts": [[2, 3], [1, 3]], "layout": "nested torch.strided"},
    ),
    "nested of other widths": (
        "torch.nested.nested_tensor([torch.ones(2, 2), torch.zeros(1, 3)])",
        "torch.tensor([1.0] * 4 + [0.0] * 3)",
        {"shape": [7], "parts": [[2, 2], [1, 3]]},
    ),
    "nested transposed": (
        "torch.nested.nested_tensor([torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)]).transpose(1, 2)",
        "torch.cat([torch.arange(6.0).reshape(2, 3).t(), torch.ones(3, 2)])",
        {"shape": [6, 2], "parts": [[3, 2], [3, 2]]},
    ),
    "nested without parts": ("torch.nested.nested_tensor([])", "torch.zeros(0)", {"parts": [], "shape": [0]}),
    "jagged": (
        "torch.nested.nested_tensor([torch.ones(2, 3), -2 * torch.ones(1, 3)], layout=torch.jagged)",
        "torch.tensor([[1.0] * 3, [1.0] * 3, [-2.0] * 3])",
        {"shape": [3, 3], "parts": [[2, 3], [1, 3]], "layout": "nested torch.jagged"},
    ),
    "jagged transposed": (
        "torch.nested.nested_tensor([torch.arange(6.0).reshape(2, 3), torch.ones(1, 3)],"
        " layout=torch.jagged).transpose(1, 2)",
        "torch.cat([torch.arange(6.0).reshape(2, 3).t().reshape(-1), torch.ones(3)])",
        {"shape": [9], "parts": [[3, 2], [3, 1]]},
    ),
    "jagged with holes": (
        "torch.nested.narrow(torch.arange(12.0).reshape(2, 6), 1, torch.tensor([0, 1]),"
        " torch.tensor([2, 3]), layout=torch.jagged)",
        "torch.tensor([0.0, 1, 7, 8, 9])",
        {"shape": [5], "parts": [[2], [3]]},
    ),
    "per tensor": (
        "torch.quantize_per_tensor(torch.tensor([-1.0, 0.5, 2.0]), 0.5, 1, torch.qint8)",
        "torch.tensor([-1.0, 0.5, 2.0])",
        {"dtype": "torch.qint8", "stored_dtype": "torch.float32"},
    ),
    "per channel": (
        "torch.quantize_per_channel(torch.tensor([[1.0, 2], [3, 4]]), torch.tensor([0.5, 0.25]),"
        " torch.tensor([0, 0]), 0, torch.quint8)",
        "torch.tensor([[1.0, 2], [3, 4]])",
        {"dtype": "torch.quint8"},
    ),
    "float8_e8m0fnu": (
        "torch.tensor([2.0, 8.0]).to(torch.float8_e8m0fnu)",
        "torch.tensor([2.0, 8.0])",
        {"dtype": "torch.float8_e8m0fnu", "stored_dtype": "torch.float32"},
    ),
    "mkldnn": ("torch.ones(2, 2).to_mkldnn()", "torch.ones(2, 2)", {"layout": "torch._mkldnn"}),
    "own dispatch": ("Seen(torch.ones(3))", "torch.ones(3)", {"layout": "Seen"}),
    "subclass with memory": ("torch.ones(2).as_subclass(Noisy)", "torch.ones(2)", {}),
    "freed": ("freed", "its memory has been freed", {"shape": [5]}),
    "two inside": ("Two(torch.ones(2), torch.ones(2))", "Two does not say what its elements are", {}),
    "that raises": ("Raises(torch.ones(2))", "ValueError: not today", {"shape": [2]}),
    "uint4": ("torch.empty(4, dtype=torch.uint4)", "elements of torch.uint4 cannot be read", {"shape": [4]}),
    "text": ("np.array(['a', 'b'])", "elements of <U1 cannot be read", {"type": "numpy.ndarray"}),
}

SCRIPT = """\
import types, warnings
import numpy as np
from torch._subclasses.fake_tensor import FakeTensorMode
warnings.simplefilter("ignore")

class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, *inner):
        wrapper = torch.Tensor._make_wrapper_subclass(cls, inner[0].shape, dtype=inner[0].dtype)
        wrapper.inner = inner
        return wrapper
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} was called for the tool's sake")

class Seen(Wrapper):
    def __tensor_flatten__(self):
        self.first = self.inner[0]
        return ["first"], None

class Two(Wrapper):
    def __tensor_flatten__(self):
        return ["a", "b"], None

class Raises(Wrapper):
    def dequantize(self):
        torch.rand(3)
        raise ValueError("not today\\nnor tomorrow")

class Noisy(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} was called for the tool's sake")

with FakeTensorMode():
    fake = torch.ones(2, 3)
freed = torch.ones(5)
freed.untyped_storage().resize_(0)
mod = types.ModuleType("values")
mod.probe = lambda *args, **kwargs: None
debugger.register_custom_api(mod, "probe", "Values")
debugger.start()
torch.manual_seed(3)
state = torch.get_rng_state()
"""


@pytest.fixture(scope="module", params=["statistics", "md5", "tensor"])
def probed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> runs.Result:
    calls = "\n".join(f"mod.probe({value})" for value, _, _ in VALUES.values())
    source = f"{SCRIPT}{calls}\nassert torch.equal(state, torch.get_rng_state())\n"
    source += "debugger.stop()\ndebugger.step()\n"
    mode: str = request.param
    section = {"list": ["Values"], "summary_mode": "md5" if mode == "md5" else "statistics"}
    task = "tensor" if mode == "tensor" else "statistics"
    settings = runs.config("L1", task, section)
    return runs.run_script(tmp_path_factory.mktemp("probed"), source, settings)


def expected_statistics(dense: torch.Tensor) -> list[Any]:
    if dense.numel() == 0:
        return [None] * 4
    if dense.dtype is torch.bool:
        return [bool(dense.any()), bool(dense.all()), None, None]
    if dense.is_complex():
        modulus = dense.abs().double()
        return [modulus.max().item(), modulus.min().item(), modulus.mean().item(), None]
    values = dense.double()
    return [values.max().item(), values.min().item(), values.mean().item(), values.norm().item()]


@pytest.mark.parametrize("name", VALUES)
def test_value(name: str, probed: runs.Result) -> None:
    index = list(VALUES).index(name)
    leaf: dict[str, Any] = probed.ok().data()[f"Values.probe.{index}.forward"]["input_args"][0]
    _, stands_for, told = VALUES[name]
    for key, value in told.items():
        assert leaf[key] == value, key
    if not stands_for.startswith("torch."):
        assert leaf["unmeasured"].startswith(stands_for)
        assert [leaf[key] for key in STATISTICS] == [None] * 4
        assert "md5" not in leaf
        assert "data_name" not in leaf
        return
    dense: torch.Tensor = eval(stands_for)
    assert "unmeasured" not in leaf
    assert leaf["shape"] == list(dense.shape)
    for key, expected in zip(STATISTICS, expected_statistics(dense)):
        if isinstance(expected, float) and math.isnan(expected):
            assert math.isnan(leaf[key])
        elif isinstance(expected, float):
            assert leaf[key] == pytest.approx(expected, rel=1e-12), key
        else:
            assert leaf[key] is expected, key
    if "md5" in leaf:
        plain = dense.float() if dense.dtype is torch.bfloat16 else dense
        assert leaf["md5"] == f"{zlib.crc32(plain.contiguous().numpy().tobytes()):08x}"
    if "data_name" in leaf:
        saved = torch.load(probed.path() / "dump_tensor_data" / leaf["data_name"])
        assert saved.dtype == dense.dtype
        assert torch.equal(torch.nan_to_num(saved), torch.nan_to_num(dense))


def test_what_was_asked_for_is_there(probed: runs.Result) -> None:
    """The checks above look at checksums and files where there are any; here it is known which those are."""
    section = probed.ok().document("dump.json")
    leaf = section["data"]["Values.probe.0.forward"]["input_args"][0]
    is_md5 = '"summary_mode": "md5"' in (probed.folder / "config.json").read_text()
    assert ("md5" in leaf) == is_md5
    assert ("data_name" in leaf) == (section["task"] == "tensor")
    assert not (probed.path() / "dump_error_info.log").exists()


def test_they_are_counted(probed: runs.Result) -> None:
    unmeasured = [name for name, (_, why, _) in VALUES.items() if not why.startswith("torch.")]
    (line,) = [line for line in probed.ok().log if "could not be measured" in line]
    assert f"{len(unmeasured)} values of this step could not be measured: " in line
    assert line.endswith(f" and {len(unmeasured) - 3} more.")
    assert f"Values.probe.{list(VALUES).index('freed')}.forward.input.0 (its memory has been freed)" in line


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_dense_form_that_is_too_large(tmp_path: Path, task: str) -> None:
    """Statistics are there all the same; a file is not, and the record says why."""
    script = SCRIPT + (
        "mod.probe(torch.sparse_coo_tensor([[7]], [[1.0] * 1024], (1 << 20, 1024)))\n"
        "debugger.stop()\ndebugger.step()\n"
    )
    section = {"list": ["Values"], "summary_mode": "statistics"}
    result = runs.run_script(tmp_path, script, runs.config("L1", task, section)).ok()
    leaf = result.data()["Values.probe.0.forward"]["input_args"][0]
    assert [leaf[key] for key in STATISTICS] == [1.0, 0.0, 2.0**-20, 32.0]
    assert "data_name" not in leaf
    lines = [line for line in result.log if "could not be measured" in line]
    if task == "statistics":
        assert "unmeasured" not in leaf
        assert not lines
    else:
        assert leaf["unmeasured"] == "its dense form of 4.3 GB is not made for a file or a checksum"
        assert len(lines) == 1


def test_gradients_of_saved_variables(tmp_path: Path) -> None:
    """Level debug has no stop: the line comes with the step."""
    result = runs.run_script(
        tmp_path,
        SCRIPT.replace("debugger.register", "#").replace("debugger.start()", "")
        + """\
table = nn.Embedding(6, 2, sparse=True)
debugger.save(table.weight, "weight")
table(torch.tensor([1, 1, 4])).sum().backward()
debugger.save([fake, freed], "odd")
debugger.step()
debugger.step()
""",
        runs.config("debug"),
    ).ok()
    data = result.document("debug.json")["data"]
    grad = data["weight_grad.0.debug"]
    assert [grad[key] for key in STATISTICS] == [2.0, 0.0, 0.5, math.sqrt(10)]
    assert data["odd.0.debug"][0]["unmeasured"] == "a fake tensor has no elements"
    (line,) = [line for line in result.log if "could not be measured" in line]
    assert "2 values of this step could not be measured: odd.0.debug.0 (" in line
