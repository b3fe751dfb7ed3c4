"""What training does while it is collected: parameters that are written to, copies, threads, failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from .nets import DEBUGGER, HEAD, write_config
from .recorded import read, run

# Trains twice from the same parameters, without and with the tool.
TWICE = """
first = {each.name: each.asnumpy() for each in net.get_parameters()}
grad_fn = ms.value_and_grad(lambda x: net(x), 0, net.trainable_params())

def train(debugger):
    bits = []
    for each in net.get_parameters():
        each.set_data(Tensor(first[each.name]))
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    for _ in range(2):
        if debugger is not None:
            debugger.start(net)
        loss, (of_input, of_parameters) = grad_fn(x)
        optimizer(of_parameters)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        bits += [each.asnumpy().tobytes() for each in (loss, of_input, *of_parameters, *net.get_parameters())]
    return bits

bare = train(None)
"""

WRITING = """
class Average(nn.Cell):
    def __init__(self):
        super().__init__()
        self.average = Parameter(Tensor(np.ones(3, np.float32)), name="average")
        self.count = Parameter(Tensor(np.float32(0)), name="count")
        self.table = Parameter(Tensor(np.ones((2, 3), np.float32)), name="table")
        self.assign = ops.Assign()
        self.count_up = ops.AssignAdd()
    def construct(self, x):
        self.count_up(self.count, Tensor(np.float32(1)))
        self.assign(self.average, self.average * 0.9 + x.mean(0) * 0.1)
        ops.scatter_add(self.table, Tensor(np.array([0], np.int32)), Tensor(np.ones((1, 3), np.float32)))
        ops.assign_add(self.count, Tensor(np.float32(1)))
        return x * self.average + self.table[0]

class Writer(nn.Cell):
    def construct(self, x, parameter):
        assert isinstance(parameter, Parameter) and parameter.name == "given"
        ops.assign(parameter, parameter + 1)
        y = x * 2
        y.add_(1.0)
        y[0] = 0.5
        return y

class Helper:
    @staticmethod
    def scaled(x, parameter):
        assert parameter.name == "given"
        ops.assign_add(parameter, Tensor(np.ones(3, np.float32)))
        return x * parameter

class Whole(nn.Cell):
    def __init__(self):
        super().__init__()
        self.average = Average()
        self.norm = nn.BatchNorm1d(3)
        self.writer = Writer()
        self.given = Parameter(Tensor(np.zeros(3, np.float32)), name="given")
    def construct(self, x):
        x = Helper.scaled(self.writer(self.norm(self.average(x)), self.given), self.given)
        x += 1
        return (x * x).sum()

net, x = Whole(), array(4, 3)
net.set_train()
"""


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_parameters_that_are_written_to(level: str, tmp_path: Path) -> None:
    write_config(tmp_path, level)
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{WRITING}{TWICE}{DEBUGGER}
debugger.register_custom_api(Helper, "scaled")
assert train(debugger) == bare
"""
    )
    run(tmp_path)
    data = read(tmp_path / "output/step1/rank/dump.json")["data"]
    if level != "L1":
        assert "Cell.writer.Writer.backward.0" in data
        assert data["Cell.writer.Writer.backward.0"]["output"][1] is None
    if level != "L0":
        assert "Primitive.assign.Assign.0.forward" in data and "Helper.scaled.0.backward" in data


def test_what_an_operator_failed_with_reaches_the_script(tmp_path: Path) -> None:
    """Operators run in the background. Whoever reads results is told, and that is to be the script."""
    write_config(tmp_path, "L1")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
def failing():
    # Has no kernel on CPU, which is found out when it runs. Nobody looks at the result.
    mint.sort(x)
    (x + 1).asnumpy()

for with_tool in (False, True):
    if with_tool:
        debugger.start()
    try:
        failing()
    except RuntimeError as error:
        assert "SortExt" in str(error)
    else:
        raise AssertionError(with_tool)
ops.tanh(x)
debugger.stop()
"""
    )
    run(tmp_path)
    assert "Functional.tanh.0.forward" in read(tmp_path / "output/step0/rank/dump.json")["data"]


def test_copies_of_cells_are_cells_without_hooks(tmp_path: Path) -> None:
    write_config(tmp_path, "L0")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
import copy
debugger.start(net)
teacher = copy.deepcopy(net)
assert (teacher(x).asnumpy() == net(x).asnumpy()).all()
debugger.stop()
debugger.step()
teacher(x)
"""
    )
    run(tmp_path)
    data = read(tmp_path / "output/step0/rank/dump.json")["data"]
    assert [name for name in data if name.startswith("Cell.head.1.Tanh")] == ["Cell.head.1.Tanh.forward.0"]


def test_the_first_operators_come_from_several_threads(tmp_path: Path) -> None:
    write_config(tmp_path, "L1", "tensor")
    (tmp_path / "run.py").write_text(
        """
import threading
import mindspore as ms
from mindspore import ops
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
from msprobe.mindspore import PrecisionDebugger
debugger = PrecisionDebugger("config.json")
debugger.start()

def work(number):
    for _ in range(30):
        ops.tanh(ops.ones((4,), ms.float32) * number)

threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for each in threads: each.start()
for each in threads: each.join()
debugger.stop()
"""
    )
    run(tmp_path)
    assert len(read(tmp_path / "output/step0/rank/dump.json")["data"]) == 360


def test_outputs_that_have_no_backward_pass_and_cells_that_are_compiled(tmp_path: Path) -> None:
    write_config(tmp_path, "L0")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
class Dictionary(nn.Cell):
    def construct(self, x):
        return {{"twice": x * 2}}
class Compiled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = nn.ReLU()
    @ms.jit
    def construct(self, x):
        return self.inner(x)
class Whole(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dictionary, self.fast, self.tanh = Dictionary(), Compiled(), nn.Tanh()
    def construct(self, x):
        return self.tanh(self.fast(self.dictionary(x)["twice"])).sum()
net = Whole()
for _ in range(2):
    debugger.start(net)
    ms.grad(net)(x)
    debugger.stop()
    debugger.step()
"""
    )
    said = run(tmp_path)
    assert said.count("The output of a Dictionary is a dict: its backward pass is not recorded.") == 1
    assert said.count("fast (1 in all). To see what goes into them and comes out, take level L1") == 1
    # The gradient of what went in was taken for one of what came out.
    assert list(read(tmp_path / "output/step0/rank/dump.json")["data"]) == [
        "Cell.dictionary.Dictionary.forward.0",
        "Cell.tanh.Tanh.forward.0",
        "Cell.tanh.Tanh.backward.0",
    ]


def test_odd_scalars_cost_themselves(tmp_path: Path) -> None:
    write_config(tmp_path, "L1")
    (tmp_path / "run.py").write_text(
        f"""{HEAD}{DEBUGGER}
class Lib:
    @staticmethod
    def same(*values, **named):
        return values
debugger.register_custom_api(Lib, "same")
debugger.start()
half = Tensor(np.array(3 + 4j), ms.complex64)
Lib.same(1, np.datetime64("2020-01-01"), np.complex64(1j), np.void(b"ab"), half, np.float16(0.5))
Lib.same(self=3)
debugger.stop()
"""
    )
    assert "Calls of same that name the argument self are not recorded." in run(tmp_path)
    step = tmp_path / "output/step0/rank"
    assert not (step / "dump_error_info.log").exists()
    data = read(step / "dump.json")["data"]
    assert list(data) == ["Lib.same.0.forward"]
    one, date, imaginary, raw, scalar, half = data["Lib.same.0.forward"]["input_args"]
    assert one == {"type": "int", "value": 1} and (date, imaginary, raw) == (None, None, None)
    assert half == {"type": "float16", "value": 0.5}
    assert [scalar[key] for key in ("Max", "Min", "Mean", "Norm")] == [5.0, 5.0, 5.0, 5.0]
