"""``examples/rl_trl``: key data and layers of a real training with ``trl.GRPOTrainer``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .example_runs import Runs

pytestmark = pytest.mark.slow

MODULE = "model.layers.1.mlp.down_proj"
CULPRIT = f"Module.{MODULE}.Linear.forward.0"
BAD_REFERENCE = ["--perturb", f"1:{MODULE}:1e-3"]
LAYERS = ["reference_dump=true", "actor_train_dump=true", "step_start=1", "step_end=1"]
WITH_LAYERS = [argument for setting in LAYERS for argument in ("--set", setting)]

COMMANDS = {
    "good": WITH_LAYERS,
    "again": [],
    "bad_reference": [*WITH_LAYERS, *BAD_REFERENCE],
    "off": ["--set", "msprobe=false"],
    "two_updates": ["--updates", "2", "--steps", "4"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    yield Runs("rl_trl/train.py", tmp_path_factory.mktemp("trl"), COMMANDS)


def saved(run: Path, key: str) -> list[str]:
    """Steps and micro steps of a key."""
    places = sorted(path.relative_to(run / "data" / key) for path in (run / "data" / key).glob("*/rank0/*"))
    return [f"{place.parts[0]}/{place.parts[2]}" for place in places]


def test_every_key_is_saved_where_trl_has_it(runs: Runs) -> None:
    good, two_updates = runs.make("good", "two_updates")
    per_step = [f"step{step}/micro_step0" for step in range(3)]
    per_micro_batch = [f"step{step}/micro_step{micro}" for step in range(3) for micro in range(2)]
    for key in ("prompts", "responses"):
        assert saved(good, key) == per_step
        # A rollout for two updates.
        assert saved(two_updates, key) == ["step0/micro_step0", "step2/micro_step0"]
    for key in ("ref_log_prob", "advantages", "log_prob", "kl_loss", "loss"):
        assert saved(good, key) == per_micro_batch
    # TRL does not compute it where it would be log_prob again.
    assert not (good / "data/old_log_prob").exists()
    assert saved(two_updates, "old_log_prob") == [
        f"step{s}/micro_step{m}" for s in range(4) for m in range(2)
    ]
    assert len(list((good / "data/responses/step0/rank0/micro_step0").glob("*.npy"))) == 16
    assert (good / "configurations.json").is_file()


def test_phases(runs: Runs) -> None:
    (good,) = runs.make("good")
    for phase in ("reference_compute_log_prob", "actor_update"):
        assert [path.name for path in (good / phase).iterdir()] == ["step1"]
        assert (good / phase / "step1/rank/dump.json").is_file()


def test_training_is_what_it_was(runs: Runs) -> None:
    off, *_ = runs.make("off", "good", "again")
    assert not off.exists()
    assert len(runs.steps("off")) == 3
    assert runs.steps("off") == runs.steps("good") == runs.steps("again")


def test_same_runs_are_identical(runs: Runs) -> None:
    answer = runs.compare_key_data("good", "again")
    assert answer.exit_code == 0, answer.text
    assert answer.file["verdict"]["status"] == "identical"


def test_fault_in_the_reference_model(runs: Runs) -> None:
    answer = runs.compare_key_data("good", "bad_reference")
    verdict = answer.file["verdict"]
    assert answer.exit_code == 1
    assert (verdict["status"], verdict["key"]) == ("diverged", "ref_log_prob")
    assert (verdict["step"], verdict["rank"]) == (1, 0)
    assert "reference model" in answer.text

    layers = runs.compare_layers("bad_reference", "good", "reference_compute_log_prob", "--tolerance", "0")
    assert layers.exit_code == 1
    assert layers.file["culprit"] == CULPRIT
