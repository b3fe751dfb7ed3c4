"""A framework nobody has heard of: the collector learns all about it from its adapter.

It has tensors of its own, its own words for them, its own file format, and a subclass whose elements only the
adapter can find.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

from msprobe import _native
from msprobe.core.collect_config import resolve
from msprobe.core.common.exceptions import ScopeException
from msprobe.core.framework import Adapter, DeviceSketch, Form, Framework, Kind, Special


class Sheet:
    """A tensor of the framework."""

    def __init__(self, array: np.ndarray[Any, Any], needs_gradient: bool = False) -> None:
        self.array = array
        self.requires_grad = needs_gradient
        self.is_cpu = True
        self._version = 0

    @property
    def dtype(self) -> str:
        return sys.intern(str(self.array.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)


class Folded(Sheet):
    """Half of its elements are not stored."""


class Refusing:
    """Nobody knows what to make of it."""


class SheetAdapter:
    """The framework's side of a collection."""

    framework = Framework(
        "abacus", "abacus.Sheet", "abacus.Extent", "npy", ("Abacus",), (("pegs", "slide rules"),)
    )
    team = None
    border = None
    register_hook = None

    def __init__(self) -> None:
        self.told: list[tuple[bool, str]] = []
        self.failures: list[tuple[str, str, str]] = []
        self.asked: list[type] = []

    @staticmethod
    def data_ptr(tensor: Any) -> int:
        return int(tensor.array.ctypes.data)

    @staticmethod
    def stride(tensor: Any) -> tuple[int, ...]:
        return tuple(step // tensor.array.itemsize for step in tensor.array.strides)

    @staticmethod
    def is_neg(tensor: Any) -> bool:
        return False

    is_conj = is_neg

    @staticmethod
    def is_grad_enabled() -> bool:
        return False

    is_mode_enabled = is_grad_enabled
    unseen = contextlib.nullcontext

    def kind(self, cls: type) -> Kind:
        self.asked.append(cls)
        known: dict[type, Kind] = {
            Sheet: Kind.TENSOR,
            Folded: Kind.SPECIAL_TENSOR,
            Refusing: Kind.RARE,
            tuple: Kind.SEQUENCE,
            int: Kind.INT,
            float: Kind.FLOAT,
        }
        return known.get(cls, Kind.NULL)

    def rare(self, value: Any, key: str | None) -> Any:
        raise RuntimeError("an abacus has no such thing")

    def special(self, tensor: Any) -> Special:
        return Special(None, "abacus.Folded", None, [])

    def form(self, tensor: Any, whole: bool) -> Form:
        rows, columns = tensor.shape
        return Form(Sheet(tensor.array), [2 * rows, columns], zeros=tensor.array.size, layout="folded")

    def on_host(self, tensor: Any) -> Any:
        return None

    def measure_on_device(self, tensor: Any) -> int | None:
        return None

    def fetch(self) -> list[tuple[float, float, float, float]]:
        return []

    def fetch_sketches(self) -> list[DeviceSketch]:
        return []

    def describe_stack(self, frame: FrameType) -> tuple[list[str], bool]:
        return [f"File abacus.py, line 1, in {frame.f_code.co_name}"], False

    def is_compiled_code(self, code: CodeType) -> bool:
        return False

    def running_node(self) -> int | None:
        return None

    def tell(self, notices: list[tuple[bool, str]]) -> None:
        self.told += notices

    def failed(self, phase: str, name: str, error: BaseException) -> None:
        self.failures.append((phase, name, str(error)))


def collect(path: Path, adapter: SheetAdapter, task: str, calls: list[tuple[tuple[Any, ...], Any]]) -> Path:
    """Records calls of one function, and returns where the dump is."""
    contract: Adapter = adapter
    collector = _native.Collector(
        resolve(adapter.framework, task=task, dump_path=str(path), level="L1"), contract
    )
    directory, _ = collector.open_step(path, 0, None)
    api = collector.add_api("Abacus.add")
    for args, result in calls:
        call = collector.api_begin(api, args, {}, sys._getframe())
        assert call is not None
        collector.api_end(call, args, {}, result)
    assert collector.flush() is None
    collector.end_step()
    assert directory is not None
    return Path(directory)


def test_words_numbers_and_files_are_the_framework_s_own(tmp_path: Path) -> None:
    adapter = SheetAdapter()
    one, two = Sheet(np.arange(6, dtype=np.float32).reshape(2, 3)), Sheet(np.ones((3, 2), np.float32).T)
    total = Sheet(one.array + two.array, needs_gradient=True)
    dump = collect(tmp_path, adapter, "tensor", [((one, two, 3, 0.5), total)])
    written = json.loads((dump / "dump.json").read_text())
    assert written["framework"] == "abacus"
    record = written["data"]["Abacus.add.0.forward"]
    first, second, third, fourth = record["input_args"]
    assert first == {
        "type": "abacus.Sheet",
        "dtype": "float32",
        "shape": [2, 3],
        "Max": 5.0,
        "Min": 0.0,
        "Mean": 2.5,
        "Norm": pytest.approx(float(np.linalg.norm(one.array))),
        "requires_grad": False,
        "data_name": "Abacus.add.0.forward.input.0.npy",
    }
    assert (third, fourth) == ({"type": "int", "value": 3}, {"type": "float", "value": 0.5})
    assert record["output"][0]["requires_grad"] is True
    for tensor, told in ((one, first), (two, second), (total, record["output"][0])):
        stored = np.load(dump / "dump_tensor_data" / told["data_name"])
        assert np.array_equal(stored, tensor.array)
    assert not list(dump.rglob("*.pt"))
    assert not adapter.failures
    # One question for each class, however often it comes.
    assert sorted(cls.__name__ for cls in adapter.asked) == ["Sheet", "float", "int"]


def test_what_only_the_adapter_knows(tmp_path: Path) -> None:
    adapter = SheetAdapter()
    folded = Folded(np.full((2, 2), 4.0, np.float32))
    dump = collect(tmp_path, adapter, "statistics", [((folded,), Refusing()), ((Refusing(),), folded)])
    data = json.loads((dump / "dump.json").read_text())["data"]
    told = data["Abacus.add.0.forward"]["input_args"][0]
    assert (told["type"], told["shape"], told["layout"]) == ("abacus.Folded", [4, 2], "folded")
    assert (told["Max"], told["Min"], told["Mean"]) == (4.0, 0.0, 2.0)
    assert [(name, text) for _, name, text in adapter.failures] == [
        ("Abacus.add.0.forward", "an abacus has no such thing"),
        ("Abacus.add.1.forward", "an abacus has no such thing"),
    ]


def test_an_adapter_that_names_no_format_is_refused(tmp_path: Path) -> None:
    class Unknown(SheetAdapter):
        framework = Framework("abacus", "abacus.Sheet", "abacus.Extent", "csv")

    with pytest.raises(ValueError, match='"csv" is no format of tensor files'):
        _native.Collector(resolve(SheetAdapter.framework, dump_path=str(tmp_path)), Unknown())


def test_the_dump_compares_like_any_other(tmp_path: Path) -> None:
    dumps = []
    for side, factor in (("target", 1.5), ("golden", 1.0)):
        one = Sheet(np.arange(6, dtype=np.float32).reshape(2, 3))
        calls = [((one,), Sheet(one.array * factor))]
        dumps.append(collect(tmp_path / side, SheetAdapter(), "statistics", calls))
    command = [sys.executable, "-m", "msprobe", "compare", *map(str, dumps), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "Abacus.add.0.forward gets the same and gives something else" in done.stdout


def test_a_configuration_has_the_words_of_the_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ends = ["Abacus.add.0.forward", "Abacus.add.1.forward"]
    section = {"scope": ends, "pegs": 3}
    config = {"task": "statistics", "dump_path": "d", "level": "L1", "statistics": section}
    Path("config.json").write_text(json.dumps(config))
    assert resolve(SheetAdapter.framework, "config.json").scope == ends
    said = '"pegs" in the section "statistics" is ignored: it is a key of slide rules'
    assert said in capsys.readouterr().out
    with pytest.raises(ScopeException, match=re.escape(ends[0])):
        resolve(Framework("rod", "rod.Rod", "rod.Size", "npy", ("Rod",)), "config.json")
    with pytest.raises(ValueError, match="Processor not found for framework: abacus, task: run_ut"):
        resolve(SheetAdapter.framework, task="run_ut", dump_path="d")


@pytest.mark.parametrize("crate", ["dump", "collect"])
def test_collecting_and_writing_know_no_framework(crate: str) -> None:
    """The names of frameworks are data of their adapters. In comments, names of records may be examples."""
    root = Path(__file__).parents[3]
    for path in (root / "crates" / crate / "src").rglob("*.rs"):
        if path.name == "tests.rs":
            continue
        code = path.read_text().split("#[cfg(test)]\nmod tests {")[0].split("#[cfg(test)]\nimpl")[0]
        for line in code.splitlines():
            text = re.sub("`[^`]*`", "", line) if line.lstrip().startswith("//") else line
            for word in ("torch", "mindspore", '".pt"'):
                assert word not in text.lower(), f"{path} says {word}: {line}"
