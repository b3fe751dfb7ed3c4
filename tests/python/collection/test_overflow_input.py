"""Task overflow_check: the warning says whether a call made what is not finite or was given it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.collection import runs

SCRIPT = """\
class Scale(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = nn.Parameter(torch.tensor(by))
    def forward(self, x, *rest):
        return torch.mul(x, self.by)

root = nn.Module()
root.makes, root.given, root.broken = Scale(1e30), Scale(1.0), Scale(float("nan"))
root.finite = Scale(1.0)
x = torch.full((2,), 1e20, requires_grad=True)
debugger.start(root)
root.finite(x)
root.given(root.makes(x)).sum().backward()
root.broken(torch.ones(2))
root.given(torch.ones(2), unknown)
debugger.stop()
debugger.step()
"""
UNKNOWN = """\
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    unknown = torch.ones(2)
"""
MADE = " Its input was finite."
GIVEN = " Its input was already not finite, so look for an earlier call."
BROKEN = " Its input was finite, its parameters were not."

EXPECTED = {
    "L0": {
        "Module.makes.Scale.forward.0": MADE,
        "Module.given.Scale.forward.0": GIVEN,
        "Module.broken.Scale.forward.0": BROKEN,
    },
    "L1": {"Torch.mul.1.forward": MADE, "Torch.mul.2.forward": GIVEN, "Torch.mul.3.forward": GIVEN},
}


def warnings(result: runs.Result) -> dict[str, str]:
    found = {}
    for line in result.ok().log:
        before, words, after = line.partition(". Overflow detected.")
        if words:
            found[before.removeprefix("[WARNING] msprobe is collecting data on ")] = after
    return found


@pytest.mark.parametrize("level", EXPECTED)
def test_forward(tmp_path: Path, level: str) -> None:
    settings = runs.config(level, "overflow_check", {"overflow_nums": -1})
    found = warnings(runs.run_script(tmp_path, UNKNOWN + SCRIPT, settings))
    for name, sentence in EXPECTED[level].items():
        assert found[name] == sentence, name
    assert not any("finite.Scale.forward" in name for name in found)
    if level == "L1":
        # The gradient of the scale is infinite: the input times what came in.
        backward = {name: text for name, text in found.items() if name.endswith("backward")}
        assert backward["Torch.mul.2.backward"] == MADE


def test_input_that_is_not_recorded(tmp_path: Path) -> None:
    """Then nothing is claimed."""
    section = {"overflow_nums": -1, "data_mode": ["output"]}
    found = warnings(
        runs.run_script(tmp_path, UNKNOWN + SCRIPT, runs.config("L1", "overflow_check", section))
    )
    assert found["Torch.mul.1.forward"] == ""


def test_input_that_was_not_measured(tmp_path: Path) -> None:
    source = UNKNOWN + SCRIPT.replace("root.given(torch.ones(2), unknown)", "root.makes(x, unknown)")
    settings = runs.config("L0", "overflow_check", {"overflow_nums": -1})
    found = warnings(runs.run_script(tmp_path, source, settings))
    assert found["Module.makes.Scale.forward.0"] == MADE
    assert found["Module.makes.Scale.forward.1"] == ""


def test_a_call_that_raises_names_no_files(tmp_path: Path) -> None:
    """Its tensors are gone when that is known."""
    result = runs.run_script(
        tmp_path,
        """\
        debugger.start()
        try:
            torch.matmul(torch.tensor([[float("inf")]]), torch.ones(5, 5))
        except RuntimeError:
            pass
        torch.exp(torch.full((2,), 1e9))
        debugger.stop()
        debugger.step()
        """,
        runs.config("L1", "overflow_check", {"overflow_nums": -1}),
    ).ok()
    data = result.data()
    assert data["Torch.matmul.0.forward"]["input_args"][0]["Max"] == float("inf")
    assert "data_name" not in data["Torch.matmul.0.forward"]["input_args"][0]
    names = sorted(path.name for path in (result.path() / "dump_tensor_data").iterdir())
    assert names == ["Torch.exp.0.forward.input.0.pt", "Torch.exp.0.forward.output.0.pt"]
    assert warnings(result)["Torch.matmul.0.forward"] == GIVEN
