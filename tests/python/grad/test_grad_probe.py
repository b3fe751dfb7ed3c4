"""Which calls make a step, which parameters get a row, and what is in it."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from msprobe.core.common.exceptions import FileCheckException, MsprobeException
from msprobe.pytorch import PrecisionDebugger
from tests.python.grad.probing import listing, model_of, monitor, names, rows, sgd, write_config

TWO = {"a": torch.tensor([1.0, -2.0]), "b": torch.tensor([[0.5]])}


@pytest.fixture(autouse=True)
def no_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrecisionDebugger, "_instance", None)


def flush(debugger: PrecisionDebugger) -> None:
    assert debugger._gradients is not None
    debugger._gradients.flush()


# ---- the debugger


def test_through_the_debugger(tmp_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(tmp_path))
    assert (debugger.task, debugger.service, debugger.config) == ("grad_probe", None, None)
    model = model_of(TWO)
    assert debugger.monitor(model) is None
    assert debugger.start() is None and debugger.stop() is None and debugger.step() is None
    sgd(model).step()
    flush(debugger)
    assert listing(tmp_path / "out") == [
        "rank0/grad_summary_0.csv",
        "rank0/step0/a.npy",
        "rank0/step0/b.npy",
    ]
    assert (tmp_path / "out/rank0/step0").stat().st_mode & 0o7777 == 0o750
    assert (tmp_path / "out/rank0/step0/a.npy").stat().st_mode & 0o7777 == 0o640
    assert (tmp_path / "out/rank0/grad_summary_0.csv").stat().st_mode & 0o7777 == 0o640


def test_arguments_win_over_the_file(tmp_path: Path) -> None:
    path = write_config(tmp_path, {"grad_level": "L0"}, task="statistics", step=[5])
    debugger = PrecisionDebugger(path, task="grad_probe", dump_path=str(tmp_path / "else"), step=[1])
    model = model_of(TWO)
    debugger.monitor(model)
    optimizer = sgd(model)
    for _ in range(3):
        optimizer.step()
    flush(debugger)
    assert listing(tmp_path / "else") == ["rank0/grad_summary_1.csv"]
    assert not (tmp_path / "out").exists()


def test_the_argument_chooses_another_task(tmp_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(tmp_path), task="statistics")
    assert debugger.task == "statistics" and debugger.service is not None
    debugger.monitor(model_of(TWO))


def test_monitor_needs_a_debugger_and_a_module(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="PrecisionDebugger instance is not created"):
        PrecisionDebugger.monitor(model_of(TWO))
    debugger = PrecisionDebugger(write_config(tmp_path))
    wrong: Any
    for wrong in (None, 5, torch.zeros(1), [], torch.jit.script(nn.Linear(1, 1))):
        with pytest.raises(MsprobeException):
            debugger.monitor(wrong)


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ({"grad_level": "L3"}, r"grad_level must be one of dict_keys\(\['L0', 'L1', 'L2'\]\)"),
        ({"param_list": "a"}, "param_list must be a list"),
        ({"bounds": 1}, "bounds must be a list"),
        ({"bounds": [True]}, "bounds element is not int or float"),
        ({"bounds": [1e19]}, "bounds element is out of int64 range"),
        ({"bounds": [1, 0]}, "bounds list is not ascending"),
    ],
)
def test_wrong_sections(section: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=f"^{text}$") as raised:
        PrecisionDebugger(write_config(tmp_path, section))
    assert type(raised.value) is Exception


def test_wrong_keys(tmp_path: Path) -> None:
    with pytest.raises(MsprobeException):
        PrecisionDebugger(write_config(tmp_path, rank=[-1]))
    with pytest.raises(FileCheckException):
        PrecisionDebugger(write_config(tmp_path, dump_path=str(tmp_path / "a b")))
    assert PrecisionDebugger._instance is None


def test_old_torch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "1.13.1")
    with pytest.raises(MsprobeException, match=r"needs PyTorch 2\.0 or newer"):
        monitor(tmp_path)


# ---- steps


def test_other_optimizers_do_not_count(tmp_path: Path) -> None:
    probe, model, stranger = monitor(tmp_path), model_of(TWO), model_of(TWO)
    probe.monitor([model])
    ours, theirs = sgd(model), sgd(stranger)
    for _ in range(2):
        theirs.step()
        ours.step()
        theirs.step()
    probe.flush()
    assert sorted(path.name for path in (tmp_path / "out/rank0").glob("*.csv")) == [
        "grad_summary_0.csv",
        "grad_summary_1.csv",
    ]


def test_several_optimizers_make_one_step(tmp_path: Path) -> None:
    probe, model = monitor(tmp_path), model_of({**TWO, "c": torch.ones(3)})
    probe.monitor([model])
    first = torch.optim.SGD([model.get_parameter("b")], lr=0.1)
    second = torch.optim.Adam([model.get_parameter("a"), model.get_parameter("c")], lr=0.1)
    model.get_parameter("a").grad = None
    for step in range(3):
        first.step()
        probe.flush()
        assert names(tmp_path / "out", step) == ["b", "c"]
        model.get_parameter("a").grad = torch.ones(2) * step
        # What is recorded is recorded.
        model.get_parameter("c").grad = torch.full((3,), 9.0)
        second.step()
        probe.flush()
        assert names(tmp_path / "out", step) == ["a", "b", "c"], "in the order of the model"
        maxima = [row["max"] for row in rows(tmp_path / f"out/rank0/grad_summary_{step}.csv")]
        assert maxima == [f"{step}.0", "0.5", "1.0"]
        model.get_parameter("a").grad = None
        model.get_parameter("c").grad = torch.ones(3)
    assert not (tmp_path / "out/rank0/grad_summary_3.csv").exists()
    # One that is not used any more holds up nothing.
    for _ in range(2):
        second.step()
    probe.flush()
    assert (tmp_path / "out/rank0/grad_summary_3.csv").exists()
    assert not (tmp_path / "out/rank0/grad_summary_5.csv").exists()


def test_one_optimizer_called_group_by_group_makes_one_step(tmp_path: Path) -> None:
    probe, model = monitor(tmp_path), model_of(TWO)
    probe.monitor([model])
    optimizer = torch.optim.SGD(
        [{"params": [model.get_parameter("a")]}, {"params": [model.get_parameter("b")]}], lr=0.0
    )
    groups = optimizer.param_groups
    for _ in range(2):
        for group in groups:
            optimizer.param_groups = [group]
            optimizer.step()
    probe.flush()
    assert len(list((tmp_path / "out/rank0").glob("*.csv"))) == 2


def test_the_same_model_twice_and_another_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe, model = monitor(tmp_path), model_of(TWO)
    for _ in range(3):
        probe.monitor([model])
    assert capsys.readouterr().out.count("this model is watched already") == 1
    other = model_of({"b": torch.ones(1), "d": torch.ones(1)})
    probe.monitor([other])
    assert "recorded as model1.b" in capsys.readouterr().out
    first, second = sgd(model), sgd(other)
    for _ in range(2):
        first.step()
        second.step()
    probe.flush()
    assert names(tmp_path / "out", 1) == ["a", "b", "model1.b", "d"]
    assert not (tmp_path / "out/rank0/grad_summary_2.csv").exists()


@pytest.mark.parametrize("main_grad", [False, True])
def test_copies_in_float32_stand_for_the_parameters(main_grad: bool, tmp_path: Path) -> None:
    probe, model = monitor(tmp_path, {"grad_level": "L0"}), model_of(TWO).half()
    probe.monitor([model])
    copies = [parameter.detach().float().requires_grad_() for parameter in model.parameters()]
    if main_grad:
        for parameter in model.parameters():
            parameter.main_grad = torch.full(parameter.shape, 7.0)
        copies = [torch.cat([copy.detach().reshape(-1) for copy in copies]).requires_grad_()]
    optimizer = torch.optim.SGD(copies, lr=0.1)
    for _ in range(2):
        optimizer.step()
    probe.flush()
    found = rows(tmp_path / "out/rank0/grad_summary_1.csv")
    assert [row["max"] for row in found] == (["7.0", "7.0"] if main_grad else ["1.0", "0.5"])


def test_parameters_that_were_exchanged_are_found_again(tmp_path: Path) -> None:
    probe, model = monitor(tmp_path), nn.Linear(2, 2)
    probe.monitor([model])
    model.weight = nn.Parameter(torch.zeros(3, 3))
    model.bias = nn.Parameter(torch.zeros(3))
    gc.collect()
    optimizer = sgd(model)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    probe.flush()
    assert names(tmp_path / "out", 0) == ["weight", "bias"]


def test_no_gradients_no_rows(tmp_path: Path) -> None:
    probe, model = monitor(tmp_path, {"grad_level": "L2"}), model_of({"a": None})
    probe.monitor([model])
    sgd(model).step()
    probe.flush()
    assert listing(tmp_path / "out") == ["rank0/grad_summary_0.csv"]
    assert rows(tmp_path / "out/rank0/grad_summary_0.csv") == []


def test_an_earlier_summary_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "out/rank0/grad_summary_0.csv"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    stale = old.with_name("grad_summary_7.csv")
    stale.write_text("stale")
    probe, model = monitor(tmp_path), model_of(TWO)
    probe.monitor([model])
    sgd(model).step()
    probe.flush()
    assert len(rows(old)) == 2 and stale.read_text() == "stale"
    assert f"{old} will be deleted" in capsys.readouterr().out


# ---- values


def test_no_gradient_stops_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gradients = {
        "empty": torch.zeros(0, 3),
        "complex": torch.tensor([1 + 2j, 3j]),
        "sparse": torch.eye(2).to_sparse(),
        "odd name": torch.ones(2),
        "fine": torch.ones(2),
    }
    probe, model = monitor(tmp_path, {"grad_level": "L2", "bounds": [0]}), model_of(gradients)
    probe.monitor([model])
    optimizer = torch.optim.SGD([model.get_parameter("fine")], lr=0.0)
    for _ in range(2):
        optimizer.step()
    probe.flush()
    found = rows(tmp_path / "out/rank0/grad_summary_1.csv")
    cells = [[row[key] for key in ("(-inf, 0]", "(0, inf)", "=0", "max", "min", "norm")] for row in found]
    assert cells == [
        ["0", "0", "0", "nan", "nan", "0.0"],
        ["0", "0", "0", "nan", "nan", "nan"],
        ["0.5", "0.5", "0.5", "1.0", "0.0", "1.4142135381698608"],
        ["0.0", "1.0", "0.0", "1.0", "1.0", "1.4142135381698608"],
        ["0.0", "1.0", "0.0", "1.0", "1.0", "1.4142135381698608"],
    ]
    assert [row["shape"] for row in found] == ["[0, 3]", "[2]", "[2, 2]", "[2]", "[2]"]
    directions = sorted(path.name for path in (tmp_path / "out/rank0/step1").iterdir())
    assert directions == ["empty.npy", "fine.npy", "sparse.npy"]
    output = capsys.readouterr().out
    assert output.count("it is complex") == 1 and output.count("its directions are not saved") == 2


def test_without_bounds_there_is_one_fraction(tmp_path: Path) -> None:
    probe, model = monitor(tmp_path, {"grad_level": "L2", "bounds": []}), model_of(TWO)
    probe.monitor([model])
    sgd(model).step()
    probe.flush()
    text = (tmp_path / "out/rank0/grad_summary_0.csv").read_text(encoding="utf-8-sig").splitlines()
    assert text[0] == "param_name,=0,max,min,norm,shape"
    assert text[2] == 'b,0.0,0.5,0.5,0.5,"[1, 1]"'


@pytest.mark.parametrize("compact", [False, True])
def test_directions_of_every_layout(compact: bool, tmp_path: Path) -> None:
    base = torch.randn(4, 6, 5)
    gradients = {
        "plain": base,
        "reversed": base.permute(2, 1, 0),
        "mixed": base.permute(1, 0, 2),
        "sliced": base[::2, 1:, ::3],
        "sliced_matrix": base[0].t()[::2],
        "channels": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
        "expanded": torch.ones(3, 1).expand(3, 4),
        "scalar": torch.tensor(2.0),
        "halves": base.half(),
        "large": torch.randn(1100, 1000).t(),
    }
    probe = monitor(tmp_path, {"compact_direction": compact})
    model = model_of(gradients)
    probe.monitor([model])
    sgd(model).step()
    probe.flush()
    for name, gradient in gradients.items():
        positive = (gradient > 0).numpy()
        if compact:
            bits = (tmp_path / f"out/rank0/step0/{name}.bits").read_bytes()
            start = 12 + 8 * positive.ndim
            assert bits[:8] == b"MSPBITS1"
            unpacked = numpy.unpackbits(numpy.frombuffer(bits[start:], "u1"), bitorder="little")
            assert (unpacked[: positive.size] == positive.reshape(-1)).all(), name
            continue
        expected = tmp_path / "expected.npy"
        numpy.save(expected, positive)
        assert (tmp_path / f"out/rank0/step0/{name}.npy").read_bytes() == expected.read_bytes(), name


# ---- what the probe leaves alone


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "fused"])
def test_training_has_the_same_bits(optimizer: str, tmp_path: Path) -> None:
    def train(watched: bool) -> list[torch.Tensor]:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(40, 30), nn.Dropout(0.3), nn.LayerNorm(30), nn.Linear(30, 5))
        probe = monitor(tmp_path, {"grad_level": "L2"}) if watched else None
        if probe is not None:
            probe.monitor([model])
        made: torch.optim.Optimizer
        if optimizer == "sgd":
            made = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        else:
            made = torch.optim.Adam(model.parameters(), lr=0.1, fused=optimizer == "fused")
        for _ in range(4):
            made.zero_grad()
            model(torch.randn(8, 40)).square().mean().backward()
            made.step()
        if probe is not None:
            probe.flush()
        return [parameter.detach() for parameter in model.parameters()] + [torch.rand(3)]

    alone, watched = train(False), train(True)
    assert all(torch.equal(one, other) for one, other in zip(alone, watched))
    assert len(list((tmp_path / "out/rank0").glob("*.csv"))) == 4


def test_nothing_is_kept_alive(tmp_path: Path) -> None:
    probe, model = monitor(tmp_path), model_of({"a": torch.ones(2)})
    probe.monitor([model])
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()
    parameter = model.get_parameter("a")
    assert parameter.grad is not None
    known = [weakref.ref(item) for item in (model, optimizer, parameter, parameter.grad)]
    del model, optimizer, parameter
    gc.collect()
    assert [item() for item in known] == [None] * 4
    probe.flush()
    monitored = weakref.ref(probe)
    del probe
    gc.collect()
    assert monitored() is None
