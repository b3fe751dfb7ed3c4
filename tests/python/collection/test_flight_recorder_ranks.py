"""The flight recorder of several ranks: what one finds has all of them write. Also on accelerators."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.python.analyze.answers import ask
from tests.python.collection import runs
from tests.python.collection.fake_device import FAKE_DEVICE
from tests.python.collection.scripts.flight import BAD_STEP

CASES = ("together", "late", "healthy")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runs.Result]:
    root = tmp_path_factory.mktemp("ranks")
    jobs = {}
    for case in CASES:
        folder = root / case
        folder.mkdir()
        settings = runs.config("L1", section={"flight_recorder": True})
        (folder / "config.json").write_text(json.dumps(settings))
        jobs[case] = functools.partial(runs.run_worker, folder, "flight", case, str(runs.free_port()))
    return runs.run_all(jobs)


def found(result: runs.Result) -> list[str]:
    return sorted(
        str(path.relative_to(result.folder / "dump")) for path in result.folder.glob("dump/step*/*")
    )


@pytest.mark.parametrize("case", ["together", "late"])
def test_one_rank_has_all_of_them_write(case: str, ranks: dict[str, runs.Result]) -> None:
    result = ranks[case].ok()
    both = [f"step{step}/rank{rank}" for step in (BAD_STEP - 1, BAD_STEP) for rank in (0, 1)]
    assert found(result) == both
    for step in (BAD_STEP - 1, BAD_STEP):
        own, other = (list(result.data(step, rank)) for rank in (0, 1))
        assert [name for name in other if ".log." not in name and "__rsub__" not in name] == own
        assert "Distributed.irecv.0.forward" in own and len(own) == 5
    marker = json.loads((result.folder / "dump/flight_recorder.json").read_text())
    assert (marker["rank"], marker["step"], marker["record"]) == (1, BAD_STEP, "Torch.log.0.forward")
    assert f"Rank 1 found NaN or Inf in Torch.log.0.forward of step {BAD_STEP}: " in result.stdout
    assert result.stdout.count("msprobe ends successfully.") == 2
    for rank in (0, 1):
        assert json.loads((result.folder / f"held{rank}.json").read_text()) == [0, 0, 0]


@pytest.mark.parametrize("case", ["together", "late"])
def test_the_analysis_finds_in_it_what_set_it_off(
    case: str, ranks: dict[str, runs.Result], tmp_path: Path
) -> None:
    answer = ask(ranks[case].ok().folder / "dump", tmp_path).report
    assert [(birth["rank"], birth["operation"]) for birth in answer["births"]] == [(1, "Torch.log.0.forward")]
    assert answer["step"].endswith(f"step{BAD_STEP}")
    assert len(answer["clean_steps"]) == 1 and not answer["problems"]


def test_buffers_that_are_received_into_do_not_count(ranks: dict[str, runs.Result]) -> None:
    """Nothing is wrong here; the one thing written is what both ranks are asked for by a file."""
    result = ranks["healthy"].ok()
    assert found(result) == [f"step{step}/rank{rank}" for step in (BAD_STEP - 1, BAD_STEP) for rank in (0, 1)]
    assert "NaN or Inf" not in result.stdout
    assert not (result.folder / "dump/flight_recorder.json").exists()
    assert result.stdout.count("as flight_recorder.request asks") == 2
    # The recorder goes on, with one step more than it writes.
    assert json.loads((result.folder / "held0.json").read_text())[0] == 3


DEVICE = f"""{FAKE_DEVICE}
good = torch.empty(7, device="meta")
for step in range(6):
    debugger.start()
    for call in range(10):
        torch.neg(torch.empty(13, device="meta") if (step, call) == (4, 6) else good)
    seen = len(fetches)
    debugger.stop()
    debugger.step()
result([seen, fetches])
"""


@pytest.mark.parametrize("keeps", [{"steps": 2}, {"records": 4}])
def test_an_accelerator_answers_at_the_end_of_the_window(keeps: dict[str, Any], tmp_path: Path) -> None:
    settings = runs.config("L1", section={"flight_recorder": keeps})
    result = runs.run_script(tmp_path, DEVICE, settings).ok()
    seen, fetches = result.printed()
    # One for each window and one for each end of a step, up to the end of the recorder.
    assert seen == len(fetches) == 10 and all(count in (0, 20, 21) for count in fetches)
    marker = json.loads((tmp_path / "dump/flight_recorder.json").read_text())
    assert (marker["step"], marker["record"]) == (4, "Torch.neg.6.forward")
    names = [name for name in result.data(4) if ".neg." in name]
    first = 0 if "steps" in keeps else 4
    assert names == [f"Torch.neg.{call}.forward" for call in range(first, 10)]
    assert (tmp_path / "dump/step3").exists() == ("steps" in keeps)
    output = result.data(4)["Torch.neg.5.forward"]["output"][0]
    assert (output["Max"], output["Min"]) == (7.5, -7.5)
