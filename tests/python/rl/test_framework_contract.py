"""What an RL framework touches inside the debugger, against a recorded run of a loop that does just that.

The recorded script is run as it is: two ranks, three phases, layers of step 2 only, with and without a
reference model that is changed in one place.
"""

from __future__ import annotations

import functools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.python.collection import golden, runs

RECORDED = Path(__file__).parents[2] / "golden" / "rl_collect" / "end_to_end"
RANKS = (0, 1)
RUNS: dict[str, list[str]] = {"layers_a": [], "layers_b": ["perturb"]}
PHASES = ("actor_compute_log_prob", "actor_update", "reference_compute_log_prob")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where both runs were made."""
    root = tmp_path_factory.mktemp("contract")
    driver = str(RECORDED / "driver.py")
    for name, flags in RUNS.items():
        with ThreadPoolExecutor(len(RANKS)) as pool:
            ranks = [
                pool.submit(runs.run, root, driver, name, str(rank), str(len(RANKS)), "layers", *flags)
                for rank in RANKS
            ]
            for rank in ranks:
                result = rank.result().ok()
                assert result.errors() == []
                assert not [line for line in result.log if "earlier run" in line]
    return root


@pytest.mark.parametrize("name", RUNS)
def test_files(name: str, folder: Path) -> None:
    found = sorted(
        path.relative_to(folder).as_posix() for path in (folder / name).rglob("*") if path.is_file()
    )
    assert found == (RECORDED / f"tree_{name}.txt").read_text().split()


def document(root: Path, name: str, phase: str, rank: int, file: str) -> Any:
    return json.loads((root / name / phase / "step2" / f"rank{rank}" / file).read_text())


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", RUNS)
def test_records(name: str, phase: str, rank: int, folder: Path) -> None:
    for file in ("dump.json", "construct.json"):
        expected, got = (document(root, name, phase, rank, file) for root in (RECORDED, folder))
        assert golden.compare_documents(file, expected, got) == []


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("phase", PHASES)
def test_call_numbers_begin_again(phase: str, rank: int, folder: Path) -> None:
    data = document(folder, "layers_a", phase, rank, "dump.json")["data"]
    calls = [name.rsplit(".", 1)[1] for name in data if name.startswith("Module.0.Linear.forward.")]
    assert calls == (["0", "1"] if phase == "actor_update" else ["0"])


@pytest.mark.parametrize("rank", RANKS)
def test_the_last_layer_of_the_reference_model_differs_first(rank: int, folder: Path) -> None:
    read = functools.partial(
        document, folder, phase="reference_compute_log_prob", rank=rank, file="dump.json"
    )
    left, right = read("layers_a")["data"], read("layers_b")["data"]
    assert [name for name in left if left[name] != right[name]] == ["Module.2.Linear.forward.0"]


STARTS = """\
debugger = PrecisionDebugger(task="statistics", level="L0", step=["1-1"], dump_path="./dump")
service = debugger.service

def phase(name, model, call, is_new, **tokens):
    service.first_start = is_new
    service.config.dump_path = f"./dump/{name}"
    debugger.start(model=model, **tokens)
    call()
    debugger.stop()
    service.reset_status()

actor, first, second = (nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(3))
x = torch.ones(1, 2)
flags = []
for step in range(3):
    def generate(model=actor):
        for _ in range(4):
            model(x)
    phase("generate", actor, generate, step < 2, token_range=[1, 2])
    flags.append(service.first_start)
    # The tokens are those of the phase before.
    phase("train", actor, generate, False)
    phase("pair", [first, second], lambda: second(first(x)), step < 2)
    # Tokens again, of another model.
    phase("other", (second,), lambda: generate(second), False, token_range=[0, 0])
    phase("all", second, lambda: generate(second), False, token_range=(0, 9))
    debugger.step()
result(flags)
"""


def forwards(result: runs.Result, phase: str) -> list[str]:
    names = [name for name in result.data(1, None, f"dump/{phase}") if ".forward." in name]
    return [name.removeprefix("Module.").replace(".forward.", " ") for name in names]


def test_starts_with_models_and_tokens_in_turn(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path / "starts", STARTS).ok()
    # Before the step nothing is hooked, in it the flag is taken, after it everything is over.
    assert result.printed() == [True, False, False]
    both = ["0.Linear", "1.ReLU"]
    assert forwards(result, "generate") == [f"{name} {call}" for call in (1, 2) for name in both]
    assert forwards(result, "train") == [f"{name} {call}" for call in range(4) for name in both]
    assert forwards(result, "pair") == [f"{model}.{name} 0" for model in (0, 1) for name in both]
    assert forwards(result, "other") == [f"1.{name} 0" for name in both]
    assert forwards(result, "all") == [f"1.{name} {call}" for call in range(4) for name in both]
    steps = [path.parent.name for path in (result.folder / "dump").rglob("rank")]
    assert steps == ["step1"] * 5


COPIES = """\
import copy, io
from msprobe.pytorch import module_dump, module_dump_end

debugger = PrecisionDebugger(task="statistics", level="mix", dump_path="./dump")
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
alone = nn.Linear(2, 2)
x = torch.ones(1, 2)

def call(*models):
    for each in models:
        each(x)

def window(given, *models, **tokens):
    debugger.start(model=given, **tokens)
    call(*models)
    debugger.stop()
    debugger.step()

window(model, model, token_range=[0, 0])
module_dump(alone, "alone")
module_dump_end()
stored = io.BytesIO()
torch.save(model, stored)
stored.seek(0)
deep, loaded, other = copy.deepcopy(model), torch.load(stored, weights_only=False), copy.deepcopy(alone)
window(model, deep, loaded, other, model)           # copies are not recorded,
window(deep, deep, token_range=[0, 0])              # until they are hooked themselves
debugger.start(model=model)
module_dump(other, "copy")
call(other, alone)
module_dump_end()
debugger.stop()
debugger.step()
"""


def test_copies_of_hooked_models(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path / "copies", COPIES).ok()
    assert result.errors() == []
    modules = [
        [name for name in result.data(step) if re.match(r"Module\..*forward", name)] for step in range(4)
    ]
    once = ["Module.0.Linear.forward.0", "Module.1.Linear.forward.0"]
    assert modules == [once, once, once, ["Module.copy.Linear.forward.0"]]
