"""Two ranks over gloo: whole gradients, shards, and parts of sums."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy

from tests.python.collection import runs
from tests.python.grad.probing import listing, names, rows, write_config

NAMES = ["0.weight", "0.bias", "2.weight", "2.bias"]


def run_ranks(folder: Path, kind: str, **keys: Any) -> list[Any]:
    """What each rank said the gradients were."""
    write_config(folder, {"grad_level": "L2"}, **keys)
    port = str(runs.free_port())
    jobs = {
        str(rank): partial(
            runs.run,
            folder,
            "-m",
            "tests.python.grad.scripts.ranks",
            kind,
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE="2",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
            DS_ACCELERATOR="cpu",
        )
        for rank in range(2)
    }
    return [result.ok().printed() for result in runs.run_all(jobs).values()]


def check_rows(root: Path, rank: int, step: int, gradients: dict[str, list[float]]) -> None:
    """Rows and directions are those of these gradients, by the names of the rows."""
    assert names(root, step, rank) == list(gradients)
    for row in rows(root / f"rank{rank}/grad_summary_{step}.csv"):
        expected = numpy.array(gradients[row["param_name"]], dtype=numpy.float32)
        if expected.size:
            assert numpy.float32(row["max"]) == expected.max()
            assert numpy.float32(row["min"]) == expected.min()
        directions = numpy.load(root / f"rank{rank}/step{step}/{row['param_name']}.npy")
        assert str(list(directions.shape)) == row["shape"]
        assert directions.reshape(-1).tolist() == (expected > 0).tolist()


def test_replicas_record_whole_gradients(tmp_path: Path) -> None:
    said = run_ranks(tmp_path, "ddp")
    for rank, steps in enumerate(said):
        for step, gradients in enumerate(steps):
            check_rows(tmp_path / "out", rank, step, gradients)
    first, second = (tmp_path / f"out/rank{rank}/grad_summary_1.csv" for rank in range(2))
    assert first.read_bytes() == second.read_bytes(), "gradients were averaged before they were recorded"


def test_ranks_are_filtered(tmp_path: Path) -> None:
    run_ranks(tmp_path, "ddp", rank=[1], step=[1])
    assert {name.split("/")[0] for name in listing(tmp_path / "out")} == {"rank1"}
    assert names(tmp_path / "out", 1, rank=1) == NAMES


def test_shards_are_recorded_as_shards(tmp_path: Path) -> None:
    for rank, steps in enumerate(run_ranks(tmp_path, "fsdp")):
        assert len(steps) == 2
        for step, gradients in enumerate(steps):
            assert list(gradients) == NAMES
            named = {f"{name}.shard{rank}of2": values for name, values in gradients.items()}
            check_rows(tmp_path / "out", rank, step, named)


def test_placements_are_in_the_name(tmp_path: Path) -> None:
    for rank, local in enumerate(run_ranks(tmp_path, "tensors")):
        found = [f"shard.shard{rank}of2", "same", f"part.partial{rank}of2"]
        check_rows(tmp_path / "out", rank, 0, dict.fromkeys(found, local))


def test_partitions_are_recorded_by_parameter(tmp_path: Path) -> None:
    first, second = run_ranks(tmp_path, "partitions")
    for step in range(2):
        check_rows(tmp_path / "out", 0, step, {"a": first[:4], "b.shard0of2": first[4:]})
        check_rows(tmp_path / "out", 1, step, {"b.shard1of2": second})
    assert rows(tmp_path / "out/rank0/grad_summary_0.csv")[0]["shape"] == "[2, 2]"
    assert not (tmp_path / "out/rank0/grad_summary_2.csv").exists()
