"""Whole training scripts: what is there when they end, and what happens when the disk is full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.python.collection import runs
from tests.python.grad.probing import listing, names

SETTINGS: dict[str, Any] = {"task": "grad_probe", "dump_path": "./out", "grad_probe": {"grad_level": "L2"}}

TRAIN = """
    import os
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(200, 100), nn.Linear(100, 10))
    debugger.monitor(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 200)).square().mean().backward()
        optimizer.step()
"""


def test_everything_is_written_when_the_script_ends(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, TRAIN, SETTINGS).ok()
    found = listing(tmp_path / "out")
    assert len(found) == 3 * (1 + 4)
    assert names(tmp_path / "out", 2) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert any("> parameter names:" in line for line in result.log)
    assert not result.errors()


def test_everything_is_written_when_the_script_raises(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, TRAIN + "    raise SystemExit(3)\n", SETTINGS)
    assert result.returncode == 3
    assert len(listing(tmp_path / "out")) == 3 * (1 + 4)


def test_a_full_disk_ends_the_probe_and_not_the_training(tmp_path: Path) -> None:
    limit = """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    """
    result = runs.run_script(tmp_path, limit + TRAIN + "    result(step)\n", SETTINGS).ok()
    assert result.printed() == 2
    (error,) = result.errors()
    assert "0.weight.npy" in error and "training goes on" in error
    assert not list((tmp_path / "out").rglob(".part*"))


def test_a_directory_that_cannot_be_made_ends_the_probe(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/rank0").write_text("")
    result = runs.run_script(tmp_path, TRAIN + "    result(step)\n", SETTINGS).ok()
    assert result.printed() == 2
    assert len(result.errors()) == 1


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    fork = """
    child = os.fork()
    if child == 0:
        optimizer.step()
        os._exit(0)
    result(os.waitpid(child, 0)[1])
    """
    result = runs.run_script(tmp_path, TRAIN + fork, SETTINGS).ok()
    assert result.printed() == 0
    assert not result.errors()
    assert len(list((tmp_path / "out/rank0").glob("*.csv"))) == 3
