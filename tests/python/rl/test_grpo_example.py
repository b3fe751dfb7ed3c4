"""From two runs that disagree to the module at fault, by the commands of ``examples/rl_grpo/README.md``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .example_runs import Runs

pytestmark = pytest.mark.slow

MODULE = "model.layers.1.mlp.down_proj"
CULPRIT = f"Module.{MODULE}.Linear.forward.0"
KEYS = {
    "prompts",
    "responses",
    "old_log_prob",
    "ref_log_prob",
    "advantages",
    "log_prob",
    "kl_loss",
    "loss",
}

LAYERS = ["--set", "step_start=1", "--set", "step_end=1"]
REFERENCE_LAYERS = [*LAYERS, "--set", "reference_dump=true"]
ACTOR_LAYERS = [*LAYERS, "--set", "actor_train_dump=true"]
NO_KEY_DATA = ["--set", "key_data_dump=false", "--steps", "2"]
BAD_REFERENCE = ["--perturb", f"reference:1:{MODULE}:1e-3"]
TWO_RANKS = ["--ranks", "2"]
# Larger than rounding, so that it is found without asking for runs that are the same to the last bit.
BAD_REFERENCE_ON_RANK_1 = ["--perturb", f"reference:1:{MODULE}:0.1", "--perturb-rank", "1"]

COMMANDS = {
    "good": [],
    "again": [],
    "off": ["--set", "msprobe=false"],
    "bad_reference": BAD_REFERENCE,
    "good_layers": [*REFERENCE_LAYERS, *ACTOR_LAYERS, *NO_KEY_DATA],
    "bad_reference_layers": [*REFERENCE_LAYERS, *NO_KEY_DATA, *BAD_REFERENCE],
    # Everything at once, which users who do not know the step yet cannot have.
    "bad_actor": [*ACTOR_LAYERS, "--perturb", f"actor:1:{MODULE}:1e-3"],
    "other_samples": ["--perturb", "sampling:1"],
    "good_2": [*TWO_RANKS, *REFERENCE_LAYERS],
    "again_2": TWO_RANKS,
    "bad_reference_2": [*TWO_RANKS, *REFERENCE_LAYERS, *BAD_REFERENCE_ON_RANK_1],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    yield Runs("rl_grpo/train.py", tmp_path_factory.mktemp("grpo"), COMMANDS)


def micro_steps(run: Path, key: str) -> list[str]:
    return sorted(str(path.relative_to(run / "data" / key)) for path in (run / "data" / key).glob("*/*/*"))


def test_what_a_run_leaves(runs: Runs) -> None:
    run, two_ranks = runs.make("good", "good_2")
    assert {entry.name for entry in run.iterdir()} == {"configurations.json", "data"}
    for path, ranks in ((run, [0]), (two_ranks, [0, 1])):
        assert {entry.name for entry in (path / "data").iterdir()} == KEYS
        for key in sorted(KEYS):
            # A rollout is saved once; two updates of two micro batches each follow.
            times = 1 if key in ("prompts", "responses") else 4
            expected = [
                f"step{s}/rank{r}/micro_step{m}" for s in range(3) for r in ranks for m in range(times)
            ]
            assert micro_steps(path, key) == expected
    responses = run / "data/responses/step0/rank0/micro_step0"
    assert len(list(responses.glob("responses.*.npy"))) == 16
    configuration = json.loads((run / "configurations.json").read_text())
    assert list(configuration) == ["actor", "ref", "reward", "rl", "generate"]


def test_ranks_have_their_own_prompts(runs: Runs) -> None:
    (run,) = runs.make("good_2")
    first, second = (
        [path.read_bytes() for path in sorted(run.glob(f"data/prompts/step0/rank{rank}/*/*.npy"))]
        for rank in (0, 1)
    )
    assert len(first) == len(second) == 16
    assert first != second


def test_collecting_changes_nothing(runs: Runs) -> None:
    run, *_ = runs.make("off", "good", "good_layers")
    assert not run.exists()
    lines = runs.steps("off")
    assert [line.split(":")[0] for line in lines] == ["step 0", "step 1", "step 2"]
    assert runs.steps("good") == lines
    assert runs.steps("good_layers") == lines[:2]


@pytest.mark.parametrize("suffix", ["", "_2"])
def test_same_runs_are_identical(runs: Runs, suffix: str) -> None:
    answer = runs.compare_key_data(f"good{suffix}", f"again{suffix}")
    assert answer.exit_code == 0, answer.text
    assert answer.file["verdict"]["status"] == "identical"
    assert "identical" in answer.text


def test_fault_in_the_reference_model(runs: Runs) -> None:
    """The whole way, each step with runs of its own."""
    answer = runs.compare_key_data("good", "bad_reference")
    verdict = answer.file["verdict"]
    assert answer.exit_code == 1
    assert (verdict["status"], verdict["key"]) == ("diverged", "ref_log_prob")
    assert (verdict["step"], verdict["rank"]) == (1, 0)
    assert "reference model" in verdict["text"]
    for words in ("ref_log_prob", "step 1", "reference model"):
        assert words in answer.text

    layers = runs.compare_layers(
        "bad_reference_layers", "good_layers", "reference_compute_log_prob", "--tolerance", "0"
    )
    assert layers.exit_code == 1
    assert (layers.file["culprit"], layers.file["step"]) == (CULPRIT, 1)
    assert "parameters" in layers.file["text"]


def test_fault_on_one_of_two_ranks(runs: Runs) -> None:
    answer = runs.compare_key_data("good_2", "bad_reference_2")
    verdict = answer.file["verdict"]
    assert answer.exit_code == 1
    assert (verdict["status"], verdict["key"]) == ("diverged", "ref_log_prob")
    assert (verdict["step"], verdict["rank"]) == (1, 1)
    assert "reference model" in answer.text

    layers = runs.compare_layers("bad_reference_2", "good_2", "reference_compute_log_prob")
    assert layers.exit_code == 1
    assert (layers.file["culprit"], layers.file["step"], layers.file["rank"]) == (CULPRIT, 1, 1)


def test_fault_in_the_actor(runs: Runs) -> None:
    answer = runs.compare_key_data("good", "bad_actor")
    verdict = answer.file["verdict"]
    assert answer.exit_code == 1
    assert (verdict["status"], verdict["key"]) == ("diverged", "old_log_prob")
    assert (verdict["step"], verdict["rank"]) == (1, 0)
    assert "actor" in verdict["text"]

    for phase in ("actor_compute_log_prob", "actor_update"):
        layers = runs.compare_layers("bad_actor", "good_layers", phase, "--tolerance", "0")
        assert layers.exit_code == 1
        assert layers.file["culprit"] == CULPRIT


def test_other_random_numbers(runs: Runs) -> None:
    """The same model samples other tokens: the answer says where the first response goes its own way."""
    answer = runs.compare_key_data("good", "other_samples")
    verdict = answer.file["verdict"]
    assert answer.exit_code == 1
    assert (verdict["status"], verdict["key"]) == ("diverged", "responses")
    assert (verdict["step"], verdict["rank"]) == (1, 0)
    assert "prompts identical" in answer.text
    assert "token" in answer.text
