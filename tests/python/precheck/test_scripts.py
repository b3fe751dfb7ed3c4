"""Scripts of single operators, run as users run them: by themselves, with PyTorch alone."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msprobe import _native  # noqa: E402

GOLDEN = Path(__file__).parents[2] / "golden" / "precheck" / "op_generate_pytorch"


def generate(directory: Path, **changes: Any) -> Path:
    config = {
        "dump_json_path": str(GOLDEN / "dump.json"),
        "api_name": "Functional.softmax.0",
        "extract_api_path": str(directory / "ext" / "api.json"),
        "propagation": "forward",
        "data_mode": "random_data",
        "random_seed": 3,
        "iter_times": 1,
        **changes,
    }
    path = directory / "config.json"
    path.write_text(json.dumps(config))
    return _native.generate_operator_script(path, directory, "pytorch", lambda level, text: None)


def run(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *flags: str
) -> tuple[int, str]:
    """Exit code, and what was printed."""
    monkeypatch.setattr(sys, "argv", [str(script), "--device", "cpu", *flags])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed.out + printed.err


def first_column(line: str) -> str:
    return line.split("|")[1].strip() if line.startswith("|") else line


def recorded() -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((GOLDEN / "expected.json").read_text())
    return [run for run in runs if run.get("exit") == 0]


@pytest.mark.parametrize(
    "case", recorded(), ids=lambda case: f"{case['config']['api_name']}-{case['config']['propagation']}"
)
def test_what_is_printed_has_the_rows_of_the_reference(
    case: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = {key: value for key, value in case["config"].items() if not key.endswith("_path")}
    code, printed = run(generate(tmp_path, **config), monkeypatch, capsys)
    lines = [line for line in printed.splitlines() if not line.startswith(("+", "Verdict"))]
    expected = [line for line in case["stdout"] if not line.startswith("+")]
    assert [first_column(line) for line in lines] == [first_column(line) for line in expected]
    assert code == 0, printed


@pytest.mark.parametrize(
    ("api", "propagation"),
    [
        ("Functional.conv2d.0", "backward"),
        ("Torch.tanh.0", "forward"),
        ("Functional.cross_entropy.0", "forward"),
    ],
)
def test_what_the_generator_of_the_reference_stumbles_over_runs(
    api: str,
    propagation: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = generate(tmp_path, api_name=api, propagation=propagation)
    code, printed = run(script, monkeypatch, capsys)
    assert (code, printed.splitlines()[-1]) == (0, "Verdict: pass on cpu"), printed


def test_a_wrong_operator_fails_and_its_inputs_shrink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = generate(tmp_path)
    right = torch.nn.functional.softmax

    def wrong(value: Any, *args: Any, **kwargs: Any) -> Any:
        result = right(value, *args, **kwargs)
        return result * 1.5 if value.dtype == torch.float16 else result

    monkeypatch.setattr(torch.nn.functional, "softmax", wrong)
    code, printed = run(script, monkeypatch, capsys, "--shrink")
    assert code == 1 and "Verdict: error on cpu" in printed, printed
    assert "Smaller inputs that fail as well" in printed
    small = torch.load(script.with_suffix(".small.pt"), weights_only=True)
    assert small[0][0].numel() < 64


def test_an_operator_that_raises_is_not_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = generate(tmp_path)
    monkeypatch.delattr(torch.nn.functional, "softmax")
    code, printed = run(script, monkeypatch, capsys)
    assert code == 2 and "The operator could not be run" in printed
