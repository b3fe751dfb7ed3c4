"""Tensors on an accelerator: reduced where they are, fetched once, their records complete when a window ends.

There is no accelerator here. Meta tensors take the same way through the core, with an adapter that answers
for their device; the adapter's own arithmetic is tested on the CPU.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from msprobe import _native
from msprobe.core.collection.window import Window
from msprobe.core.tensor import describe
from msprobe.pytorch.hooks.adapter import Adapter
from tests.python.collection import runs
from tests.python.collection.fake_device import FAKE_DEVICE
from tests.python.collection.sketches import components_of, read_sketch

SOURCE = f"""
import torch
from msprobe.pytorch import PrecisionDebugger
{FAKE_DEVICE}
debugger = PrecisionDebugger("./config.json")
a = torch.empty(2, 3, device="meta")
host = torch.ones(4)
debugger.start()
b = torch.add(a, a)
torch.mul(host, 2.0)
torch.add(b, a)
debugger.stop()
print("fetches", fetches)
debugger.step()
"""


def test_records_wait_for_their_numbers(tmp_path: Path) -> None:
    config = {"task": "statistics", "dump_path": "./dump", "level": "L1", "statistics": {}}
    result = runs.run_script(tmp_path, SOURCE, config).ok()
    assert "fetches [6]" in result.stdout
    data = result.data()
    assert list(data) == ["Torch.add.0.forward", "Torch.mul.0.forward", "Torch.add.1.forward"]
    figures = {"Max": 6.5, "Min": -6.5, "Mean": 0.25, "Norm": 6.0}
    for name in ("Torch.add.0.forward", "Torch.add.1.forward"):
        record = data[name]
        for tensor in [*record["input_args"], *record["output"]]:
            keys = ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad"]
            assert list(tensor) == keys
            assert {key: tensor[key] for key in figures} == figures
    assert data["Torch.mul.0.forward"]["output"][0]["Norm"] == 4.0


def test_sketches_wait_with_them(tmp_path: Path) -> None:
    config = {"task": "statistics", "dump_path": "./dump", "level": "L1", "statistics": {"sketch": True}}
    result = runs.run_script(tmp_path, SOURCE, config).ok()
    assert "fetches [6]" in result.stdout
    data = result.data()
    tensor = data["Torch.add.1.forward"]["output"][0]
    assert list(tensor)[-2:] == ["requires_grad", "sketch"]
    sketch = read_sketch(tensor["sketch"])
    assert sketch.hash == 6
    assert sketch.norm == pytest.approx(6.0)
    assert {abs(component) for component in sketch.components} == {6.0}
    assert read_sketch(data["Torch.mul.0.forward"]["output"][0]["sketch"]).norm == pytest.approx(4.0)


SHAPES = [(2,), (7,), (20,), (64,), (5, 13), (513,), (8, 512), (3, 1000), (2, 3, 12, 64), (9001,), (16, 1024)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int16, torch.uint8],
)
def test_the_same_elements_have_the_same_sketch_on_a_device(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    generator = torch.Generator().manual_seed(5)
    values = (torch.randn(shape, generator=generator) * 40).to(dtype)
    if dtype.is_floating_point:
        values.view(-1)[0] = float("nan")
        values.view(-1)[2:3] = float("-inf")
    adapter = Adapter(Window(), lambda: None, sketch=True)
    for wide in (torch.float64, torch.float32):
        adapter._wide_floats[torch.device("cpu")] = wide
        adapter.measure_on_device(values)
        adapter.measure_on_device(values.reshape(-1)[:1])
        (whole, one), _ = adapter.fetch_sketches(), adapter.fetch()
        assert whole.shape == list(shape) and one.sums == []
        host = read_sketch(_native.sketch(describe(values)))
        assert whole.hash % 2**64 == host.hash
        assert one.hash % 2**64 == read_sketch(_native.sketch(describe(values.reshape(-1)[:1]))).hash
        squares, buckets, eighths = whole.sums[0], whole.sums[1:65], whole.sums[65:]
        assert host.norm == pytest.approx(squares**0.5, rel=1e-6)
        assert components_of(buckets) == pytest.approx(host.components, abs=2e-6 * host.norm)
        assert eighths == pytest.approx([*host.rows, *host.columns], abs=2e-6 * host.norm)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_reductions(dtype: torch.dtype) -> None:
    adapter = Adapter(Window(), lambda: None)
    first = torch.arange(-3, 9).to(dtype)
    assert adapter.measure_on_device(first) == 0
    assert adapter.measure_on_device(first * 2) == 1
    assert adapter.measure_on_device(torch.ones(2, dtype=torch.bool)) is None
    rows = adapter.fetch()
    values = first.double()
    expected = (8.0, -3.0, values.mean().item(), values.norm().item())
    assert rows[0] == pytest.approx(expected, rel=1e-6)
    assert rows[1] == pytest.approx([2 * figure for figure in expected], rel=1e-6)
    assert adapter.fetch() == []
    assert json.dumps(rows)


def test_reductions_are_exact() -> None:
    adapter = Adapter(Window(), lambda: None)
    large, odd = 2**53 + 1, torch.tensor([2**53 + 1, -(2**62) - 1])
    adapter.measure_on_device(torch.tensor([1e300, 1.0], dtype=torch.float64))
    adapter.measure_on_device(torch.full((4,), 3e38))
    adapter.measure_on_device(odd)
    adapter.measure_on_device(torch.tensor([1.5, -2.0]).to(torch.float8_e4m3fn))
    assert adapter.measure_on_device(torch.tensor([1], dtype=torch.uint64)) is None
    rows = adapter.fetch()
    assert rows[0] == (1e300, 1.0, 5e299, 1e300)
    most = float(torch.tensor(3e38))
    assert rows[1] == (most, most, most, 2 * most)
    assert rows[2][:2] == (large, -(2**62) - 1) and isinstance(rows[2][0], int)
    assert rows[3] == (1.5, -2.0, -0.25, 2.5)
