"""The manual's pages on reinforcement learning: key data by hand, the YAML block, and both comparisons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.python.collection import runs
from tests.python.compare.tables import read_xlsx
from tests.python.manual import snippets

VALUES = (
    "import torch\nprompt = torch.arange(4)\nresponse = torch.ones(2, 3)\nconfigurations_json = {'lr': 0.1}\n"
)


def run(folder: Path, source: str) -> runs.Result:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(source)
    return runs.run(folder, "train.py").ok()


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_save_and_configuration(tmp_path: Path) -> None:
    """Each key has a directory by step, rank and micro step, with an array and its statistics."""
    run(tmp_path, VALUES + snippets.SAVE_SEVERAL + snippets.SAVE_CONFIG)
    found = files(tmp_path / "dump_path")
    assert "configurations.json" in found
    assert json.loads((tmp_path / "dump_path/configurations.json").read_text()) == {"lr": 0.1}
    for key in ("prompt", "response"):
        place = f"data/{key}/step0/rank0/micro_step0"
        assert {Path(name).suffix for name in found if name.startswith(place + "/")} == {".npy", ".json"}
    (statistics,) = (tmp_path / "dump_path/data/response").rglob("*.json")
    text = statistics.read_text().lower()
    assert all(word in text for word in ("max", "min", "mean", "norm", "shape"))


@pytest.mark.parametrize(
    "script", [snippets.COMPARE_KEYS, snippets.COMPARE_KEYS_BY_POSITION], ids=["names", "position"]
)
def test_comparison_of_key_data(script: str, tmp_path: Path) -> None:
    for number, factor in ((1, 1.0), (2, 1.5)):
        save = snippets.SAVE_ONE.replace("./dump_path", f"./dump_path{number}")
        run(tmp_path, VALUES + f"response = response * {factor}\n" + save)
    run(tmp_path, script)
    table = read_xlsx(tmp_path / "output_path/response.xlsx")[0]
    # The manual leaves out the unit.
    assert [name.removesuffix("(%)") for name in table.header] == snippets.KEY_HEADERS
    assert len(table.rows) == 1


LOOP = """
import torch
from msprobe.rl import RLProbe
probe = RLProbe("config.yaml")
probe.save_config({"actor": {"lr": 0.1}})
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
torch.nn.init.constant_(model[0].weight, 0.5)
for iteration in range(4):
    responses = torch.full((2, 4), float(iteration))
    probe.save({"prompts": torch.ones(2), "responses": responses})
    with probe.phase("reference_compute_log_prob", model):
        ref_log_prob = model(responses) * SCALE
    probe.save({"ref_log_prob": ref_log_prob})
    with probe.phase("actor_update", model):
        model(responses)
    probe.step()
"""


def loop(folder: Path, block: str, scale: float = 1.0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(block)
    run(folder, LOOP.replace("SCALE", str(scale)))
    return folder / "msprobe_dump"


def test_switched_off_nothing_is_written(tmp_path: Path) -> None:
    assert not loop(tmp_path, snippets.RL_DEFAULTS).exists()


def test_key_data_only(tmp_path: Path) -> None:
    root = loop(tmp_path, snippets.RL_KEY_DATA)
    assert {path.name for path in root.iterdir()} == {"data"}
    assert {path.name for path in (root / "data").iterdir()} == {"prompts", "responses", "ref_log_prob"}
    assert sorted(path.name for path in (root / "data/responses").iterdir()) == [f"step{n}" for n in range(4)]


def test_layers_of_the_reference_in_one_step_and_their_comparison(tmp_path: Path) -> None:
    for number in (1, 2):
        root = loop(tmp_path / f"run{number}", snippets.RL_REFERENCE)
        assert {path.name for path in root.iterdir()} == {"reference_compute_log_prob"}
        phase = root / "reference_compute_log_prob"
        assert [path.name for path in phase.iterdir()] == ["step2"]
        phase.rename(tmp_path / f"dump_path{number}")
    run(tmp_path, snippets.COMPARE_STEP)
    assert list((tmp_path / "output_path").glob("compare_result_*.xlsx"))
