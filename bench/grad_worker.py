"""One side of the gradient probe's benchmark: an MLP of 50M parameters, trained with a probe or without any.

Runs under the interpreter of either tool. One JSON argument says what to do; then every line on standard
input asks for some steps, and gets a line of JSON as the answer. The time ends when all files are written.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

WIDTH, LAYERS, BATCH, STEPS = 2048, 12, 128, 4


class Training:
    def __init__(self, config: str | None, dump_path: str | None) -> None:
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for _ in range(LAYERS):
            layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
        self._model = nn.Sequential(*layers)
        self._dump_path = dump_path
        self._flush: Any = None
        if config is not None:
            from msprobe.pytorch import PrecisionDebugger

            debugger: Any = PrecisionDebugger(config)
            debugger.monitor(self._model)
            # The reference has written everything when a step ends.
            self._flush = getattr(getattr(debugger, "_gradients", None), "flush", None)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01)
        self._data = torch.randn(BATCH, WIDTH)

    def __call__(self) -> dict[str, Any]:
        begin = time.perf_counter()
        for _ in range(STEPS):
            self._optimizer.zero_grad()
            self._model(self._data).square().mean().backward()
            self._optimizer.step()
        if self._flush is not None:
            self._flush()
        seconds = (time.perf_counter() - begin) / STEPS
        return {"seconds": seconds, "written": self._clear()}

    def _clear(self) -> int:
        """Removes what was written; its size in bytes."""
        if self._dump_path is None:
            return 0
        written = 0
        for path in list(Path(self._dump_path).rglob("*")):
            if path.is_file():
                written += path.stat().st_size
        shutil.rmtree(self._dump_path)
        return written


def main() -> None:
    # Standard output belongs to the answers; whatever a tool prints goes nowhere.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    order = json.loads(sys.argv[1])
    work = Training(order["config"], order["dump_path"])
    answers.write(json.dumps({"torch": torch.__version__}) + "\n")
    for _ in sys.stdin:
        answers.write(json.dumps(work()) + "\n")


if __name__ == "__main__":
    main()
