"""Ranks in log lines: the PyTorch side's have one once training is distributed, the core's never."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch.distributed

from msprobe.core.common.log import logger as core_logger
from msprobe.pytorch import PrecisionDebugger
from msprobe.pytorch.log import current_rank, log_end, logger

from .helpers import log_lines, write_config

pytestmark = pytest.mark.usefixtures("services")


@pytest.fixture
def distributed(tmp_path: Path) -> Iterator[None]:
    torch.distributed.init_process_group("gloo", f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_no_rank_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert current_rank() is None
    logger.info("text")
    assert log_lines(capsys.readouterr().out) == ["[INFO] text"]


@pytest.mark.usefixtures("distributed")
def test_the_rank_stands_before_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert current_rank() == 0
    logger.info("text")
    core_logger.info("text")
    log_end()
    lines = log_lines(capsys.readouterr().out)
    assert lines[:2] == ["[rank 0] [INFO] text", "[INFO] text"]
    assert [line.startswith("[rank 0] [INFO] *") for line in lines[2:]] == [True] * 3


@pytest.mark.usefixtures("distributed")
def test_the_configuration_is_the_cores(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = PrecisionDebugger(write_config(here, level="debug", async_dump=True))
    made.save(None, "x")
    lines = log_lines(capsys.readouterr().out)
    assert len(lines) == 2 and all(line.startswith("[WARNING] ") for line in lines)


@pytest.mark.usefixtures("distributed")
def test_level_l2_names_its_files_by_rank(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensor = {"list": ["Torch.relu.0.forward"]}
    made = PrecisionDebugger(write_config(here, task="tensor", level="L2", rank=[0], tensor=tensor))
    made.start()
    assert (here / "dump/step0/kernel_config_0.json").exists()
    assert all(line.startswith("[rank 0] ") for line in log_lines(capsys.readouterr().out))
