"""ZeRO partitions of the real DeepSpeed on two ranks.

Not among the tests that always run: DeepSpeed is not installed with the others. Where it is, this is run by
``pytest tests/python/grad/zero_check.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from tests.python.grad.probing import names
from tests.python.grad.test_grad_probe_ranks import NAMES, run_ranks


@pytest.mark.parametrize("stage", [1, 2])
def test_zero_records_partitions(stage: int, tmp_path: Path) -> None:
    said = run_ranks(tmp_path, f"zero{stage}")
    for step, whole in enumerate(said[0]):
        parts: dict[str, list[bool]] = {name: [] for name in NAMES}
        for rank in range(2):
            folder = tmp_path / f"out/rank{rank}"
            for name in names(tmp_path / "out", step, rank):
                original, _, suffix = name.partition(".shard")
                assert suffix in ("", f"{rank}of2")
                parts[original] += numpy.load(folder / f"step{step}/{name}.npy").reshape(-1).tolist()
        for name, directions in parts.items():
            expected = [value > 0 for value in whole[name]]
            assert directions == expected, name
        assert not (tmp_path / f"out/rank0/grad_summary_{len(said[0])}.csv").exists()
