"""Windows, steps, models and filters, in scripts as users write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .nets import DEBUGGER, HEAD, write_config
from .recorded import read, run


def data_of(folder: Path, step: int = 0) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = read(folder / f"output/step{step}/rank/dump.json")["data"]
    return found


def test_the_argument_task_takes_effect(tmp_path: Path) -> None:
    write_config(tmp_path, "L1")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}
from msprobe.mindspore import PrecisionDebugger
debugger = PrecisionDebugger("config.json", task="tensor")
assert PrecisionDebugger(task="statistics") is debugger
PrecisionDebugger.start()
ops.add(x, x)
PrecisionDebugger.forward_backward_dump_end()
"""
    )
    run(tmp_path)
    assert (tmp_path / "output/step0/rank/dump_tensor_data/Functional.add.0.forward.output.0.npy").is_file()


def test_a_model_of_a_skipped_start_is_kept(tmp_path: Path) -> None:
    write_config(tmp_path, "L0", step=[1])
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
from msprobe.mindspore import MsprobeStep
debugger.start(net)
model = ms.train.Model(net, loss_fn, optimizer)
columns = {{name: np.tile(value.asnumpy(), (3, 1, 1)) for name, value in (("x", x), ("y", y))}}
data = ms.dataset.NumpySlicesDataset(columns, shuffle=False)
model.train(1, data, callbacks=[MsprobeStep(debugger)], dataset_sink_mode=False)
"""
    )
    run(tmp_path)
    assert [path.name for path in (tmp_path / "output").iterdir()] == ["step1"]
    names = list(data_of(tmp_path, 1))
    assert "Cell.branch.fc.Dense.forward.0" in names and "Cell.branch.Branch.backward.1" in names


def test_cells_of_several_inputs_and_outputs(tmp_path: Path) -> None:
    write_config(tmp_path, "L0")
    (tmp_path / "run.py").write_text(
        f"{HEAD}{DEBUGGER}\ndebugger.start(net)\ngrad_fn(x, y)\ndebugger.stop()\ndebugger.step()\n"
    )
    run(tmp_path)
    record = data_of(tmp_path)["Cell.branch.Branch.backward.1"]
    assert [gradient["shape"] for gradient in record["input"]] == [[5, 8], [5, 8]]  # type: ignore[attr-defined]
    # A parameter that is given to a cell stays one: its gradient is told where it belongs.
    assert record["output"][0]["shape"] == [5, 8] and record["output"][1] is None  # type: ignore[index]


def test_token_range(tmp_path: Path) -> None:
    write_config(tmp_path, "L0")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
debugger.start(net, token_range=[1, 2])
for _ in range(5):
    net(x)
debugger.stop()
debugger.step()
"""
    )
    run(tmp_path)
    calls = [name for name in data_of(tmp_path) if name.startswith("Cell.head.SequentialCell.forward")]
    assert calls == [f"Cell.head.SequentialCell.forward.{call}" for call in (1, 2)]


def test_functions_of_gradients_after_stop(tmp_path: Path) -> None:
    write_config(tmp_path, "mix")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
def forward(x, y):
    debugger.start(net)
    loss = ((net(x) - y) ** 2).mean()
    debugger.stop()
    return loss
ms.value_and_grad(forward, None, optimizer.parameters)(x, y)
debugger.step()
"""
    )
    run(tmp_path)
    names = list(data_of(tmp_path))
    assert "Tensor.mean.0.backward" in names
    assert not [name for name in names if name.startswith("Cell") and "backward" in name]


def test_recomputed_cells(tmp_path: Path) -> None:
    write_config(tmp_path, "mix")
    (tmp_path / "run.py").write_text(
        f"{HEAD}\nnet.head.recompute()\n{DEBUGGER}\ndebugger.start(net)\ngrad_fn(x, y)\ndebugger.stop()\n"
    )
    run(tmp_path)
    assert "Cell.head.0.Dense.forward.1" in data_of(tmp_path)


def test_refusals(tmp_path: Path) -> None:
    write_config(tmp_path, "mix")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
from msprobe.core.common.exceptions import MsprobeException
kinds = "mindspore.nn.Cell or list[mindspore.nn.Cell] type, currently there is a <class 'int'> type."
for call, told in (
    (lambda: debugger.start(), 'The model cannot be None, when level is "L0" or "mix"'),
    (lambda: debugger.start(3), "The 'model' parameter must be a " + kinds),
    (lambda: debugger.start([net, 3]), "The 'model' parameter must be a " + kinds),
    (lambda: debugger.start(net, token_range=[2, 1]), "token_range must be"),
    (lambda: debugger.set_init_step(-1), "step must not be negative"),
    (lambda: debugger.register_custom_api(ops, "nothing"), "does not have nothing"),
    (lambda: debugger.register_custom_api(ops, "add", 3), "api_prefix must be string"),
):
    try:
        call()
    except MsprobeException as error:
        assert told in str(error), str(error)
    else:
        raise AssertionError(told)
"""
    )
    run(tmp_path)


def test_no_debugger_says_so(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(
        "from msprobe.mindspore import PrecisionDebugger\nPrecisionDebugger.start()\n"
    )
    assert "PrecisionDebugger instance is not created." in run(tmp_path, fails=True)


def test_single_points(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(
        f"""{HEAD}
from msprobe.mindspore import save, save_grad
def forward(value):
    save("points", "x", {{"a": value, "b": [value + 1, None]}})
    return (save_grad("points", "z", value) * 3).sum()
ms.grad(forward)(Tensor(np.ones(2, np.float32)))
for wrong in (3, "text"):
    try:
        save("points", "x", wrong)
    except TypeError:
        continue
    raise AssertionError
ms.runtime.synchronize() if hasattr(ms, "runtime") else None
"""
    )
    run(tmp_path)
    points = tmp_path / "points/step0/rank0"
    assert sorted(path.name for path in points.iterdir()) == [
        "x.a_float32_0.npy",
        "x.b.0_float32_1.npy",
        "z_grad_float32_2.npy",
    ]
    assert (np.load(points / "z_grad_float32_2.npy") == 3).all()


def test_seed_all(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(
        f"""{HEAD}
import os, random
from msprobe.mindspore import seed_all
from msprobe.core.common.exceptions import MsprobeException
seed_all(11)
first = random.random(), ops.standard_normal((3,)).asnumpy().tolist()
seed_all(11)
assert (random.random(), ops.standard_normal((3,)).asnumpy().tolist()) == first
assert os.environ["PYTHONHASHSEED"] == "11" and os.environ["HCCL_DETERMINISTIC"] == "False"
ones = Tensor(np.ones(1000, np.float32))
assert (nn.Dropout(p=0.5).set_train()(ones).asnumpy() == 1).all()
assert (ops.Dropout(keep_prob=0.3)(ones)[0].asnumpy() == 1).all()
assert mint.nn.functional.dropout(ones, 0.5) is ones
for wrong in ((-1,), (True,), (1, 1), (1, False, 2), (2**32,)):
    try:
        seed_all(*wrong)
    except MsprobeException:
        continue
    raise AssertionError(wrong)
"""
    )
    run(tmp_path)


def test_level_l2_of_one_api_writes_its_file(tmp_path: Path) -> None:
    write_config(tmp_path, "L2", "tensor", tensor={"list": ["Functional.add.0.forward"]})
    (tmp_path / "run.py").write_text(f"{HEAD}{DEBUGGER}\ndebugger.start()\nops.add(x, x)\ndebugger.stop()\n")
    assert "does not compile adump" in run(tmp_path)
    content = read(tmp_path / "output/step0/kernel_config.json")
    assert content["dump"]["dump_path"] == str(tmp_path.resolve() / "output/step0")
