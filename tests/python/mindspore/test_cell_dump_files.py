"""Cells of static graphs: what MindSpore's operators leave becomes a dump."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .recorded import GOLDEN, check_value, files_below, read


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    from msprobe.mindspore.graph import cell_dump_files

    monkeypatch.setattr(cell_dump_files, "_QUIET_SECONDS", 0.2)


def test_recorded_tensors(tmp_path: Path) -> None:
    from msprobe.mindspore.graph.cell_dump_files import finish_tensors

    case = GOLDEN / "graph_l0_post_tensor"
    dump = tmp_path / "dump"
    shutil.copytree(case / "input", dump)
    finish_tensors(dump)
    assert files_below(dump) == files_below(case / "expected")
    step = Path("step0/rank")
    for name in ("construct.json", "stack.json"):
        assert (dump / step / name).read_text() == (case / "expected" / step / name).read_text()
    ours = read(dump / step / "dump.json")
    assert ours["dump_data_dir"] == str(dump / "step0/rank0/dump_tensor_data")
    golden = read(case / "expected" / step / "dump.json")
    assert list(ours) == list(golden)
    check_value(ours["data"], golden["data"], "data")
    assert list(ours["data"]) == list(golden["data"])


def test_recorded_statistics(tmp_path: Path) -> None:
    from msprobe.mindspore.graph.cell_dump_files import finish_statistics

    case = GOLDEN / "graph_l0_post_statistics"
    dump = tmp_path / "dump"
    shutil.copytree(case / "input", dump)
    finish_statistics(dump)
    assert files_below(dump) == files_below(case / "expected")
    for path in sorted((case / "expected").rglob("*.json")):
        relative = path.relative_to(case / "expected")
        ours = (dump / relative).read_text()
        if "step1" in relative.parts and path.name != "dump.json":
            # The reference tells of the cells of earlier steps here, too.
            cell = "Cell.net.fc.Dense.forward.0"
            assert json.loads(ours) == {cell: None if path.name == "construct.json" else []}
        else:
            assert ours == path.read_text()


def test_a_rank_keeps_its_number(tmp_path: Path) -> None:
    from msprobe.mindspore.graph.cell_dump_files import finish_tensors

    dump = tmp_path / "dump"
    shutil.copytree(GOLDEN / "graph_l0_post_tensor" / "input", dump)
    (dump / "step0/rank0").rename(dump / "step0/rank3")
    finish_tensors(dump, "3", has_rank=True)
    assert (dump / "step0/rank3/dump.json").is_file()
