"""Static graphs: MindSpore's dumper is configured, and cells are instrumented."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .nets import write_config
from .recorded import GOLDEN, read, run

STAMP = re.compile(r"\.\d{16}\.")


def test_kernels_of_a_graph_are_dumped_on_cpu(tmp_path: Path) -> None:
    case = GOLDEN / "graph_l2_tensor"
    for name in ("run.py", "config.json"):
        shutil.copy(case / name, tmp_path)
    run(tmp_path)
    for name in ("kernel_graph_dump.json", "kernel_kbyk_dump.json"):
        text = (case / "output" / name).read_text().replace("<case>", str(tmp_path.resolve()))
        assert (tmp_path / "output" / name).read_text() == text
    kernels = "rank_0/Net/0/1"
    golden = {STAMP.sub(".", path.name) for path in (case / "output" / kernels).iterdir()}
    assert {STAMP.sub(".", path.name) for path in (tmp_path / "output" / kernels).iterdir()} == golden


def test_what_static_graphs_have_not(tmp_path: Path) -> None:
    for level, task, told in (
        ("L1", "statistics", "ValueError"),
        ("mix", "tensor", "ValueError"),
        ("L1", "overflow_check", "ValueError"),
        ("mix", "structure", "Valid task is needed."),
    ):
        folder = tmp_path / f"{level}_{task}"
        folder.mkdir()
        write_config(folder, level, task)
        (folder / "run.py").write_text(
            "import mindspore as ms\nms.set_context(mode=ms.GRAPH_MODE, device_target='CPU')\n"
            "from msprobe.mindspore import PrecisionDebugger\n"
            "PrecisionDebugger('config.json').start(ms.nn.ReLU())\n"
        )
        assert told in run(folder, fails=True)


def test_instrumented_cells_write_what_passes(tmp_path: Path) -> None:
    """In PyNative mode, where the operators run on CPU."""
    write_config(tmp_path, "L0", "tensor")
    (tmp_path / "run.py").write_text(
        """
import numpy as np
import mindspore as ms
from mindspore import nn, Tensor
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
from msprobe.mindspore.config import resolve
from msprobe.mindspore.framework import MINDSPORE
from msprobe.mindspore.graph import cell_dump, cell_dump_files
cell_dump_files._QUIET_SECONDS = 0.5

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)
        self.act = nn.ReLU()
    def construct(self, x):
        return self.act(self.fc(x))

net = Net()
service = cell_dump.CellDumpService(resolve(MINDSPORE, "config.json"))
service.start([("Cell.", net)], None)
ms.grad(lambda x: net(x).sum())(Tensor(np.ones((4, 3), np.float32)))
service.stop()
service.step()
"""
    )
    run(tmp_path)
    data = read(tmp_path / "output/step0/rank/dump.json")["data"]
    assert list(data) == [
        "Cell.fc.Dense.forward.0",
        "Cell.act.ReLU.forward.0",
        "Cell.act.ReLU.backward.0",
        "Cell.fc.Dense.backward.0",
    ]
    record = data["Cell.fc.Dense.backward.0"]
    assert record["input_args"][0]["shape"] == [4, 2] and record["output"][0]["shape"] == [4, 3]
    assert (tmp_path / "output/step0/rank/dump_tensor_data/Cell.fc.Dense.forward.0.output.0.npy").is_file()


def test_what_a_cell_dump_cannot_do(tmp_path: Path) -> None:
    import pytest

    from msprobe.mindspore.config import resolve
    from msprobe.mindspore.framework import MINDSPORE
    from msprobe.mindspore.graph.cell_dump import CellDumpService

    for more, told in (
        ({"rank": [0]}, "specifying rank"),
        ({"statistics": {"list": ["a"]}}, "specifying list"),
        ({"statistics": {"data_mode": ["input"]}}, "data_mode"),
        ({"statistics": {"summary_mode": "md5"}}, "md5"),
    ):
        write_config(tmp_path, "L0", "statistics", **more)
        settings = resolve(MINDSPORE, str(tmp_path / "config.json"), dump_path=str(tmp_path / "dump"))
        with pytest.raises(Exception, match=told):
            CellDumpService(settings)
