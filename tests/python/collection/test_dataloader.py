"""``enable_dataloader``: batches drive the debugger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from msprobe.core.common.exceptions import MsprobeException
from msprobe.pytorch import PrecisionDebugger, dataloader

from .helpers import log_lines, write_config

pytestmark = pytest.mark.usefixtures("services")

DEPRECATED = "[WARNING] The enable_dataloader feature will be deprecated in the future."
ORIGINAL = _BaseDataLoaderIter.__next__


def loader(length: int = 2) -> Any:
    return DataLoader(list(range(length)), batch_size=1)


def debugger(directory: Path, **keys: Any) -> Any:
    return PrecisionDebugger(write_config(directory, enable_dataloader=True, **keys))


def names(made: Any) -> list[str]:
    return [name for name, *_ in made.service.calls]


def test_without_it_torch_stays_as_it_is(here: Path) -> None:
    PrecisionDebugger(write_config(here))
    assert _BaseDataLoaderIter.__next__ is ORIGINAL


def test_a_batch_ends_the_step_before_and_starts_the_next(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = debugger(here)
    assert log_lines(capsys.readouterr().out) == [DEPRECATED]
    seen = []
    for batch in loader(2):
        seen.append((int(batch), names(made)))
    assert seen == [(0, ["start"]), (1, ["start", "stop", "step", "start"])]
    # Asking for a third batch ended the second one.
    assert names(made) == ["start", "stop", "step", "start", "stop", "step"]
    assert made.service.calls[0] == ("start", None, None)


def test_what_the_script_does_itself_is_skipped(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = debugger(here)
    capsys.readouterr()
    for _ in loader(1):
        made.start()
        made.stop()
        made.forward_backward_dump_end()
    assert names(made) == ["start", "stop", "step"]
    assert log_lines(capsys.readouterr().out) == [
        "[WARNING] DataLoader is enabled, start() skipped.",
        "[WARNING] DataLoader is enabled, stop() skipped.",
        "[WARNING] DataLoader is enabled, stop() skipped.",
    ]
    made.step()
    assert names(made)[-1] == "step"


def test_steps_pass_that_are_not_collected(here: Path) -> None:
    # The service's first effective start comes only when its step does.
    made = debugger(here, step=[1])
    for _ in loader(3):
        assert made.service.first_start
    assert names(made).count("step") == 3


def test_the_model_is_the_constructors_or_the_one_of_start(here: Path) -> None:
    model = torch.nn.Tanh()
    made = debugger(here, level="L0")
    with pytest.raises(MsprobeException, match="missing the parameter 'model'"):
        next(iter(loader()))
    made.start(model)
    next(iter(loader()))
    assert made.service.calls[-1] == ("start", [("Module.", model)], None)


def test_a_batch_that_fails_starts_nothing(here: Path) -> None:
    made = debugger(here)

    def collate(_: Any) -> Any:
        raise KeyError("broken")

    with pytest.raises(KeyError):
        next(iter(DataLoader([1], collate_fn=collate)))
    assert names(made) == []


def test_installing_twice_drives_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    debugger(here)
    monkeypatch.setattr(PrecisionDebugger, "_instance", None)
    second = debugger(here)
    for _ in loader(1):
        pass
    assert names(second) == ["start", "stop", "step"]
    dataloader.uninstall()
    assert _BaseDataLoaderIter.__next__ is ORIGINAL
