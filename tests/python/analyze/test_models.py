"""Models whose parameters are shared, and mixed precision with a scaled loss: who is blamed, and how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..collection import runs
from .answers import Answer, ask

TIMEOUT_SECS = 600


def answer(case: str, level: str, folder: Path) -> Answer:
    module = "tests.python.analyze.models"
    runs.run_within(TIMEOUT_SECS, folder, "-m", module, case, level, str(folder)).ok()
    return ask(folder / "dump" / "step0", folder / "out")


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize(
    ("case", "layer"),
    [("gpt2", "transformer.h.1.mlp.act.1"), ("t5", "decoder.block.1.layer.2.DenseReluDense.act.1")],
)
def test_the_gradient_of_a_tied_weight_is_not_blamed(
    case: str, layer: str, level: str, tmp_path: Path
) -> None:
    """It stands with the head, whose backward comes first, and is complete with the embedding's."""
    found = answer(case, level, tmp_path)
    records = json.loads((tmp_path / "dump/step0/rank/dump.json").read_text())["data"]
    head = next(name for name in records if "lm_head" in name and "parameters_grad" in name)
    assert records[head]["weight"][0]["Max"] != records[head]["weight"][0]["Max"], (
        "the shared gradient is NaN"
    )
    culprit = found.report["culprit"]
    # At level mix the product inside of that backward is seen itself.
    inner = level == "mix" and culprit["operation"].startswith("Tensor.__mul__.")
    assert inner or culprit["operation"] == f"Module.{layer}.Spoil.backward.0"
    assert (culprit["kind"], found.code) == ("produced", 1)


def test_the_gradient_of_a_parameter_knows_its_forward_call(tmp_path: Path) -> None:
    found = answer("scaled", "L0", tmp_path)
    culprit = found.report["culprit"]
    assert culprit["operation"].endswith(".Linear.parameters_grad")
    assert "not in the dump" not in culprit["reason"]
    assert (
        "the gradients its module was given and everything the forward call of it saw are finite"
        in culprit["reason"]
    )
    assert culprit["stack"], "where the module was called"
