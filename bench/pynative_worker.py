"""One process of ``bench.pynative``: trains a small network, with a configuration or without, and says how
long a step takes. Runs with our package, with the reference's, and without any."""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

WIDTH, DEPTH, ROWS = 256, 6, 64


class Block(nn.Cell):  # type: ignore[misc]
    """A layer of a perceptron with a norm and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm((WIDTH,))
        self.fc1 = nn.Dense(WIDTH, WIDTH)
        self.fc2 = nn.Dense(WIDTH, WIDTH)

    def construct(self, x: Any) -> Any:
        return x + self.fc2(ops.gelu(self.fc1(self.norm(x))))


def prepare(reference: bool) -> None:
    """What the reference needs to run on CPU: an operator has no kernel there, a signature has changed."""
    if not reference:
        return
    import inspect

    import mindspore.mint as mint
    from mindspore.ops.operations import _inner_ops

    if hasattr(mint, "norm"):
        del mint.norm
    call = _inner_ops.CellBackwardHook.__call__
    if list(inspect.signature(call).parameters) == ["self", "args"]:
        _inner_ops.CellBackwardHook.__call__ = lambda self, *args: call(
            self, args if len(args) > 1 else args[0]
        )


def main() -> None:
    options = json.loads(sys.argv[1])
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    prepare(options["reference"])
    debugger = None
    if options["config"] is not None:
        from msprobe.mindspore import PrecisionDebugger

        debugger = PrecisionDebugger(options["config"])
    net = nn.SequentialCell(*(Block() for _ in range(DEPTH)))
    net.set_train()
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    grad_fn = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    x = Tensor(np.random.RandomState(0).randn(ROWS, WIDTH).astype(np.float32))
    times = []
    for step in range(options["steps"] + 3):
        begin = time.perf_counter()
        if debugger is not None and not options["idle"]:
            debugger.start(net)
        loss, grads = grad_fn(x)
        optimizer(grads)
        loss.asnumpy()
        if debugger is not None and not options["idle"]:
            debugger.stop()
            debugger.step()
        if step >= 3:
            times.append(time.perf_counter() - begin)
    call = min(_call_seconds(x) for _ in range(5))
    print(json.dumps({"step": statistics.median(times), "call": call}))


def _call_seconds(x: Any) -> float:
    """One call of a function that is wrapped while a window is open."""
    count = 2000
    begin = time.perf_counter()
    for _ in range(count):
        ops.shape(x)
    return (time.perf_counter() - begin) / count


if __name__ == "__main__":
    main()
