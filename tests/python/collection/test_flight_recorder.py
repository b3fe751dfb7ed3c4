"""The flight recorder: nothing is written while all is well, and the last steps once something is not."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from msprobe.core import collect_config
from msprobe.core.common.exceptions import MsprobeException
from msprobe.pytorch.framework import PYTORCH
from tests.python.collection import runs
from tests.python.collection.helpers import write_config

BAD_STEP = 5
LEVELS = ("L0", "L1", "mix")

# Dies in a known step, at `log` of a negative number.
TRAIN = f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x, bad):
        x = torch.relu(self.first(x))
        x = torch.log(x - 10.0) if bad else torch.tanh(x)
        return self.last(x)

seed_all(7)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(8):
    if debugger: debugger.start(model)
    loss = model(torch.randn(3, 4), step == {BAD_STEP}).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
    if debugger:
        debugger.stop()
        debugger.step()
result([value.hex() for value in losses])
"""


def recorder(level: str = "L1", value: Any = True, **section: Any) -> dict[str, Any]:
    return runs.config(level, section={"flight_recorder": value, **section})


def texts(result: runs.Result, step: int, rank: int | None = None) -> dict[str, str]:
    """The files of a step in a form in which NaN is equal to itself and the order of keys counts."""
    names = ("dump.json", "stack.json", "construct.json")
    folder = str(result.folder)
    return {name: json.dumps(result.document(name, step, rank)).replace(folder, "") for name in names}


def steps(result: runs.Result) -> list[str]:
    return [name for name in result.steps() if name.startswith("step")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runs.Result]:
    root = tmp_path_factory.mktemp("flight")
    run = functools.partial
    jobs: dict[str, Any] = {"absent": run(runs.run_script, root / "absent", "debugger = None\n" + TRAIN)}
    for level in LEVELS:
        plain = runs.config(level)
        jobs[f"plain {level}"] = run(runs.run_script, root / f"plain{level}", TRAIN, plain)
        jobs[f"held {level}"] = run(runs.run_script, root / f"held{level}", TRAIN, recorder(level))
    few = recorder("mix", {"records": 9})
    jobs["records"] = run(runs.run_script, root / "records", TRAIN, few)
    jobs["thrice"] = run(runs.run_script, root / "thrice", TRAIN, recorder("L1", {"steps": 1, "dumps": 2}))
    return runs.run_all(jobs)


@pytest.mark.parametrize("level", LEVELS)
def test_the_last_steps_are_written_as_ever(level: str, trained: dict[str, runs.Result]) -> None:
    held, plain = trained[f"held {level}"].ok(), trained[f"plain {level}"].ok()
    assert steps(held) == [f"step{BAD_STEP - 1}", f"step{BAD_STEP}"]
    for step in (BAD_STEP - 1, BAD_STEP):
        assert texts(held, step) == texts(plain, step), step
    files = sorted(path.name for path in held.path(BAD_STEP).iterdir())
    assert files == ["construct.json", "dump.json", "stack.json"]


@pytest.mark.parametrize("level", LEVELS)
def test_it_says_what_was_wrong_and_where_it_is(level: str, trained: dict[str, runs.Result]) -> None:
    held = trained[f"held {level}"].ok()
    record = "Module.last.Linear.forward.0" if level == "L0" else "Torch.log.0.forward"
    marker = json.loads((held.folder / "dump/flight_recorder.json").read_text())
    assert marker == {"rank": None, "step": BAD_STEP, "first_step": BAD_STEP - 1, "record": record}
    said = [line for line in held.log if "flight recorder found" in line]
    assert said == [
        f"[WARNING] The flight recorder found NaN or Inf in {record} of step {BAD_STEP}: "
        f"step{BAD_STEP - 1}/rank, step{BAD_STEP}/rank in ./dump. Collection ends with this step."
    ]
    assert sum("msprobe ends successfully." in line for line in held.log) == 1


def test_training_is_the_same(trained: dict[str, runs.Result]) -> None:
    expected = trained["absent"].ok().printed()
    for name, result in trained.items():
        assert result.ok().printed() == expected, name


def test_the_last_records_are_a_dump_that_begins_in_the_middle(trained: dict[str, runs.Result]) -> None:
    few, plain = trained["records"].ok(), trained["plain mix"].ok()
    everything = [(step, name) for step in range(BAD_STEP + 1) for name in plain.data(step)]
    kept = [(step, name) for step in (BAD_STEP - 1, BAD_STEP) for name in few.data(step)]
    # The one with NaN is the ninth; the step goes on after it.
    last = everything.index((BAD_STEP, "Torch.log.0.forward"))
    assert kept[:9] == everything[last - 8 : last + 1]
    # Gradients of parameters have a place of theirs before that; where it is gone they come when they come.
    assert sorted(kept[9:]) == sorted(everything[last + 1 :])
    for step in (BAD_STEP - 1, BAD_STEP):
        data, tree = few.data(step), few.document("construct.json", step)
        whole = plain.document("construct.json", step)
        for name, value in data.items():
            assert json.dumps(value) == json.dumps(plain.data(step)[name])
            assert name.endswith(".parameters_grad") or name in tree, name
        assert all(parent is None or parent in tree for parent in tree.values())
        assert tree == {name: whole[name] for name in tree}
        stacked = {name for group, _ in few.document("stack.json", step).values() for name in group}
        assert {name for name in data if ".forward" in name} <= stacked


def test_it_may_write_more_than_once(trained: dict[str, runs.Result]) -> None:
    """Weights are NaN after the first time, so the next step is bad from its first record on."""
    thrice = trained["thrice"].ok()
    assert steps(thrice) == [f"step{BAD_STEP}", f"step{BAD_STEP + 1}"]
    assert json.loads((thrice.folder / "dump/flight_recorder.json").read_text())["step"] == BAD_STEP + 1
    assert texts(thrice, BAD_STEP + 1) == texts(trained["plain L1"], BAD_STEP + 1)


HEALTHY = """
seed_all(7)
layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
optimizer = torch.optim.AdamW(layer.parameters())
dirty = torch.zeros(64)
memory = dirty.numpy()
most = 0
for step in range(STEPS):
    debugger.start(layer)
    mask = torch.full((6, 6), float("-inf"), dtype=torch.float32).triu(1)
    scores = torch.randn(2, 6, 6) + mask
    scores = scores.masked_fill(torch.eye(6).bool(), float("-inf")) * 1.0
    torch.softmax(torch.cat([scores, torch.zeros(2, 6, 1)], -1), -1)
    # Memory that holds what was there before.
    torch.empty_like(torch.full((64,), float("nan")))
    memory[:] = float("nan")
    dirty.fill_(1.0)
    memory[:] = float("inf")
    dirty.normal_()
    memory[:] = float("nan")
    dirty[0:64] = 1.0
    memory[:] = float("nan")
    torch.add(torch.ones(64), 1.0, out=dirty)
    loss = layer(torch.randn(2, 6, 16), src_mask=mask, is_causal=False).square().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    debugger.stop()
    debugger.step()
    if step == 4:
        early = debugger.service._collector.flight_holding()
    most = max(most, debugger.service._collector.flight_holding()[2])
result([early, debugger.service._collector.flight_holding(), most])
"""


@pytest.mark.parametrize("level", LEVELS)
def test_while_all_is_well_nothing_is_written(level: str, tmp_path: Path) -> None:
    source = HEALTHY.replace("STEPS", "200" if level == "mix" else "12")
    result = runs.run_script(tmp_path, source, recorder(level)).ok()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "train.py"]
    early, late, most = result.printed()
    assert late[:2] == early[:2] and late[0] == 2
    # Numbers are written with a digit more or less.
    assert most < 1.1 * early[2]


@pytest.mark.parametrize(
    ("source", "record"),
    [
        ("torch.add(torch.ones(3), torch.full((3,), float('inf')))", "Torch.add.0.forward"),
        ("torch.log(torch.tensor([-1.0, 1.0]))", "Torch.log.0.forward"),
        ("torch.full((2,), 1.0).fill_(2.0).div_(0.0)", "Tensor.div_.0.forward"),
        ("torch.zeros(3).masked_fill(torch.eye(3).bool(), -float('inf')) * 0.0", "Tensor.__mul__.0.forward"),
        ("x = torch.zeros(2, requires_grad=True); torch.sqrt(x).sum().backward()", "Torch.sqrt.0.backward"),
        ("torch.empty(2).copy_(torch.ones(2)).mul(float('nan'))", "Tensor.mul.0.forward"),
    ],
)
def test_what_is_wrong_is_found(source: str, record: str, tmp_path: Path) -> None:
    script = f"debugger.start()\n{source}\ndebugger.stop()\ndebugger.step()"
    result = runs.run_script(tmp_path, script, recorder()).ok()
    assert json.loads((tmp_path / "dump/flight_recorder.json").read_text())["record"] == record
    assert record in result.data()


def test_masks_count_if_they_are_to(tmp_path: Path) -> None:
    script = (
        "debugger.start()\ntorch.add(torch.zeros(2), torch.tensor([0.0, -float('inf')]))\ndebugger.step()"
    )
    runs.run_script(tmp_path / "ignored", script, recorder()).ok()
    assert not (tmp_path / "ignored/dump").exists()
    runs.run_script(tmp_path / "counted", script, recorder("L1", {"ignore_masks": False})).ok()
    assert (tmp_path / "counted/dump/step0/rank/dump.json").exists()


def test_parameters_and_their_gradients_count(tmp_path: Path) -> None:
    script = """
    model = nn.Sequential(nn.Linear(2, 1))
    WHAT
    debugger.start(model)
    loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    debugger.stop()
    debugger.step()
    """
    hook = "model[0].weight.register_hook(lambda grad: grad * float('nan'))"
    for name, what in (("weight", "model[0].weight.data.fill_(float('nan'))"), ("gradient", hook)):
        folder = tmp_path / name
        runs.run_script(folder, script.replace("WHAT", what), recorder("L0")).ok()
        marker = json.loads((folder / "dump/flight_recorder.json").read_text())
        expected = "Module.0.Linear.forward.0" if name == "weight" else "Module.0.Linear.parameters_grad"
        assert marker["record"] == expected


def test_on_demand(tmp_path: Path) -> None:
    script = """
    from pathlib import Path
    PrecisionDebugger.write_flight_record()
    for step in range(12):
        debugger.start()
        x = torch.neg(torch.ones(2) * step)
        if step == 3:
            PrecisionDebugger.write_flight_record()
        if step == 7:
            Path("dump/flight_recorder.request").touch()
        torch.abs(x)
        if step == 10:
            torch.log(x)
        debugger.stop()
        debugger.step()
    """
    result = runs.run_script(tmp_path, script, recorder()).ok()
    # Asked in step 3 and in step 7; the NaN comes in step 10 and ends it.
    assert sorted(int(name[4:]) for name in steps(result)) == [2, 3, 6, 7, 9, 10]
    for step in (2, 3, 6, 7, 9):
        names = ["Tensor.__mul__.0.forward", "Torch.neg.0.forward", "Torch.abs.0.forward"]
        assert list(result.data(step)) == names
        assert result.data(step)["Torch.neg.0.forward"]["output"][0]["Max"] == -step
    said = [line for line in result.log if "flight recorder" in line]
    assert said[0].endswith("The flight recorder holds nothing.")
    assert any("as the script asked: step2/rank, step3/rank in ./dump." in line for line in said)
    assert any("as flight_recorder.request asks: step6/rank, step7/rank in ./dump." in line for line in said)
    assert (tmp_path / "dump/flight_recorder.request").exists()


def test_without_a_recorder_nothing_is_written_on_demand(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, "PrecisionDebugger.write_flight_record()", runs.config()).ok()
    assert result.log[-1:] == ["[WARNING] There is no flight recorder in this configuration."]


STEPS = """
for step in range(5):
    debugger.start()
    torch.neg(torch.ones(2))
    if step == 4:
        END
    debugger.stop()
    debugger.step()
"""


@pytest.mark.parametrize(
    ("end", "written"),
    [
        ("raise ValueError('oh')", ["step3", "step4"]),
        ("raise KeyboardInterrupt", ["step3", "step4"]),
        ("sys.exit(0)", []),
        ("torch.log(-torch.ones(2)); sys.exit(0)", ["step3", "step4"]),
        ("pass", []),
    ],
)
def test_the_end_of_the_process(end: str, written: list[str], tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, STEPS.replace("END", end), recorder())
    assert steps(result) == written
    assert result.steps() == written or "flight_recorder.json" in result.steps()
    if "raise" in end:
        assert result.returncode != 0
        assert "because the script ends with an exception: step3/rank, step4/rank" in result.stdout
        assert list(result.data(4)) == ["Torch.neg.0.forward"]


def test_a_forked_child_does_nothing(tmp_path: Path) -> None:
    script = """
    import os
    debugger.start()
    torch.neg(torch.ones(2))
    child = os.fork()
    if child == 0:
        torch.log(-torch.ones(2))
        PrecisionDebugger.write_flight_record()
        debugger.stop()
        debugger.step()
        raise ValueError("in the child")
    os.waitpid(child, 0)
    debugger.stop()
    debugger.step()
    result(os.path.exists("dump"))
    """
    assert runs.run_script(tmp_path, script, recorder()).ok().printed() is False


def test_memory_is_bounded(tmp_path: Path) -> None:
    script = """
    most = 0
    for step in range(3):
        debugger.start()
        for index in range(900):
            torch.stack([torch.ones(3)] * 4)
        most = max(most, debugger.service._collector.flight_holding()[2])
        debugger.stop()
        debugger.step()
    debugger.start()
    torch.log(-torch.ones(2))
    debugger.step()
    result(most)
    """
    result = runs.run_script(tmp_path, script, recorder("L1", {"max_memory_mb": 1, "steps": 4})).ok()
    assert 900_000 < result.printed() <= 1 << 20
    assert sum("max_memory_mb" in line for line in result.log) == 1
    # The newest are there, in their order.
    names = [name for step in steps(result) for name in result.data(int(step[4:]))]
    assert names[-3:] == ["Torch.stack.899.forward", "Tensor.__neg__.0.forward", "Torch.log.0.forward"]
    assert len(steps(result)) == 2


def test_a_list_of_steps_is_kept_to(tmp_path: Path) -> None:
    script = """
    for step in range(9):
        debugger.start()
        torch.neg(torch.ones(2))
        if step in (4, 7):
            torch.log(-torch.ones(2))
        debugger.stop()
        debugger.step()
    """
    result = runs.run_script(tmp_path, script, {**recorder(), "step": [1, 3, 7]}).ok()
    assert steps(result) == ["step3", "step7"]
    md5 = runs.run_script(
        tmp_path / "md5", script, {**recorder(summary_mode="md5"), "async_dump": False}
    ).ok()
    assert steps(md5) == ["step3", "step4"]
    assert "md5" in md5.data(4)["Torch.log.0.forward"]["output"][0]


def test_a_disk_that_cannot_be_written_ends_it(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text("in the way")
    script = "debugger.start()\ntorch.log(-torch.ones(2))\ntorch.neg(torch.ones(2))\n" + STEPS.replace(
        "END", "pass"
    )
    result = runs.run_script(tmp_path, script, recorder()).ok()
    assert len([line for line in result.errors() if "Collection stops" in line]) == 1


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"statistics": {"flight_recorder": 3}}, "flight_recorder must be true, false or an object"),
        (
            {"statistics": {"flight_recorder": {"steps": 0}}},
            "flight_recorder.steps must be an integer from 1 on",
        ),
        ({"statistics": {"flight_recorder": {"records": "9"}}}, "flight_recorder.records"),
        ({"statistics": {"flight_recorder": {"steps": 1, "records": 1}}}, "only one of the two"),
        ({"statistics": {"flight_recorder": {"dumps": -1}}}, "flight_recorder.dumps"),
        ({"statistics": {"flight_recorder": {"max_memory_mb": 0.5}}}, "flight_recorder.max_memory_mb"),
        ({"statistics": {"flight_recorder": {"ignore_masks": "no"}}}, "must be true or false"),
        ({"statistics": {"flight_recorder": {"stesp": 1}}}, "it may have steps, records, dumps"),
        ({"statistics": {"flight_recorder": True, "tensor_list": ["relu"]}}, "tensor_list"),
        ({"level": "debug", "statistics": {"flight_recorder": True}}, "L0, L1 and mix"),
        ({"task": "tensor", "tensor": {"flight_recorder": True}}, "needs the task statistics"),
    ],
)
def test_configurations_that_are_refused(keys: dict[str, Any], part: str, tmp_path: Path) -> None:
    path = write_config(tmp_path, **{"task": "statistics", "level": "L1", **keys})
    with pytest.raises(MsprobeException, match="flight_recorder") as raised:
        collect_config.resolve(PYTORCH, path)
    assert part in str(raised.value)
