"""Training is the same with the tool, and goes on whatever happens to it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .nets import DEBUGGER, HEAD, TRAINING, fingerprints, write_config
from .recorded import read, run


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("bare")
    (folder / "run.py").write_text(f"debugger = None\n{HEAD}{TRAINING}")
    return fingerprints(run(folder))


@pytest.mark.parametrize(
    "level, task",
    [
        ("L0", "statistics"),
        ("L1", "statistics"),
        ("mix", "statistics"),
        ("mix", "tensor"),
        ("mix", "structure"),
        ("L1", "overflow_check"),
        ("debug", "statistics"),
    ],
)
def test_results_are_the_same_bits(level: str, task: str, bare: list[str], tmp_path: Path) -> None:
    write_config(tmp_path, level, task)
    (tmp_path / "run.py").write_text(f"{HEAD}{DEBUGGER}{TRAINING}")
    assert fingerprints(run(tmp_path)) == bare


def test_outside_of_windows_everything_is_as_it_was(tmp_path: Path) -> None:
    write_config(tmp_path, "mix")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}
before = ops.add, Tensor.__add__, mint.abs, ops.dropout
{DEBUGGER}
def same():
    return all(a is b for a, b in zip(before, (ops.add, Tensor.__add__, mint.abs, ops.dropout)))
assert same()
debugger.start(net)
assert ops.add is not before[0] and Tensor.__add__ is not before[1]
kept = ops.dropout(Tensor(np.ones(1000, np.float32)), p=0.5)
assert (kept.asnumpy() == 1).all()
debugger.stop()
assert same()
dropped = ops.dropout(Tensor(np.ones(1000, np.float32)), p=0.5)
assert (dropped.asnumpy() == 0).any()
"""
    )
    run(tmp_path)


def test_one_failing_element_costs_itself(tmp_path: Path) -> None:
    write_config(tmp_path, "L1", "tensor")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
class Lib:
    @staticmethod
    def twice(value, odd):
        return value * 2
deep = []
for _ in range(80):
    deep = [deep]
debugger.register_custom_api(Lib, "twice")
debugger.start()
one = Tensor(np.ones(3, np.float32))
assert (Lib.twice(one, deep).asnumpy() == 2).all()
ops.add(one, Tensor(np.full(3, 1.5), ms.bfloat16))
ops.sub(one, one)
debugger.stop()
"""
    )
    run(tmp_path)
    step = tmp_path / "output/step0/rank"
    assert (
        "forward_input_data_collect failed: name=Lib.twice.0.forward"
        in (step / "dump_error_info.log").read_text()
    )
    data = read(step / "dump.json")["data"]
    assert list(data)[-2:] == ["Functional.add.0.forward", "Functional.sub.0.forward"]
    half = data["Functional.add.0.forward"]["input_args"][1]
    assert half["dtype"] == "BFloat16" and half["Max"] == 1.5 and half["Norm"] == pytest.approx(2.598076)
    assert half["data_name"] == "Functional.add.0.forward.input.1.npy"
    import numpy as np

    assert np.load(step / "dump_tensor_data" / half["data_name"]).dtype == np.float32


def test_an_exception_of_training_stays_one_and_other_threads_go_on(tmp_path: Path) -> None:
    write_config(tmp_path, "mix")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
import threading
class Broken(nn.Cell):
    def construct(self, x):
        ops.add(x, x)
        raise KeyError("mine")
class Outer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.broken = Broken()
    def construct(self, x):
        return self.broken(x)
outer = Outer()
debugger.start(outer)
for _ in range(2):
    try:
        outer(x)
    except KeyError as error:
        assert error.args == ("mine",)
    else:
        raise AssertionError
try:
    ops.tanh("no tensor")
except Exception as error:
    print("RAISED", type(error).__name__)
done = []
def work():
    for _ in range(20):
        ops.tanh(x)
    done.append(True)
threads = [threading.Thread(target=work) for _ in range(3)]
for each in threads: each.start()
for each in threads: each.join(60)
assert len(done) == 3
debugger.stop()
debugger.step()
"""
    )
    assert "RAISED" in run(tmp_path)
    data = read(tmp_path / "output/step0/rank/dump.json")["data"]
    assert "Functional.tanh.59.forward" in data and "Functional.add.1.forward" in data


def test_a_killed_process_leaves_whole_files(tmp_path: Path) -> None:
    write_config(tmp_path, "mix", "tensor")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
debugger.start(net)
while True:
    grad_fn(x, y)
    print("ROUND", flush=True)
"""
    )
    process = subprocess.Popen(
        [sys.executable, "run.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    rounds = 0
    for line in process.stdout:
        rounds += line.startswith("ROUND")
        if rounds == 30:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    step = tmp_path / "output/step0/rank"
    data = json.loads((step / "dump.json").read_text())["data"]
    json.loads((step / "construct.json").read_text())
    json.loads((step / "stack.json").read_text())
    assert len(data) > 100

    def named(value: object) -> list[str]:
        if isinstance(value, dict):
            own = [value["data_name"]] if "data_name" in value else []
            return own + [name for each in value.values() for name in named(each)]
        return [name for each in value for name in named(each)] if isinstance(value, list) else []

    files = {path.name for path in (step / "dump_tensor_data").iterdir()}
    assert set(named(data)) <= files


def test_importing_the_package_imports_no_framework(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(
        "import sys\nimport msprobe, msprobe.mindspore, msprobe.mindspore.compare\n"
        "assert not {'mindspore', 'torch', 'numpy'} & set(sys.modules)\n"
        "from msprobe.mindspore import PrecisionDebugger, seed_all, save, save_grad\n"
        "from msprobe.mindspore import MsprobeStep, MsprobeInitStep\n"
        "assert 'mindspore' in sys.modules and 'torch' not in sys.modules\n"
    )
    run(tmp_path)
