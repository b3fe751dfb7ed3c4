"""One side of a collection benchmark: a small GPT, trained with a tool attached or without any.

Runs under the interpreter of either tool and imports nothing of this project but the package. One JSON
argument says what to do; then every line on standard input asks for one timed piece of work, and gets a line
of JSON as the answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable

import torch
from torch import nn

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 1024, 128, 256, 8, 8, 4
RELU_CALLS = 20_000


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape

        def heads(y: torch.Tensor) -> torch.Tensor:
            return y.reshape(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.gelu = nn.GELU()
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Training:
    """Steps of the model, timed with whatever the tool does for them."""

    def __init__(self, config: str | None, dump_path: str | None) -> None:
        torch.manual_seed(0)
        debugger: Any = None
        if config is not None:
            from msprobe.pytorch import PrecisionDebugger

            debugger = PrecisionDebugger(config_path=config)
        self._debugger = debugger
        self._dump_path = dump_path
        self._steps = 0
        self._model = Gpt()
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01)
        self._data = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1))

    def __call__(self) -> dict[str, Any]:
        debugger, model, data = self._debugger, self._model, self._data
        begin = time.perf_counter()
        if debugger is not None:
            debugger.start(model)
        logits = model(data[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), data[:, 1:].reshape(-1))
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        seconds = time.perf_counter() - begin
        written, records, json_bytes = self._clear()
        self._steps += 1
        return {
            "seconds": seconds,
            "tensor_bytes": written,
            "records": records,
            "json_bytes": json_bytes,
            "loss": loss.item(),
        }

    def _clear(self) -> tuple[int, int, int]:
        """Empties the tensor files of the step; returns their bytes, records, and bytes of dump.json.

        Bytes are those a reader gets: a file with several names counts as often.
        They are not deleted: some file systems are slow to create files where others were just deleted.
        """
        if self._dump_path is None:
            return 0, 0, 0
        records, json_bytes = 0, 0
        step = Path(self._dump_path, f"step{self._steps}")
        files = list(step.rglob("*.pt"))
        written = sum(path.stat().st_size for path in files)
        for path in files:
            os.truncate(path, 0)
        for path in step.rglob("dump.json"):
            text = path.read_text()
            records += len(json.loads(text)["data"])
            json_bytes += len(text)
        return written, records, json_bytes


class Relu:
    """A loop that does little but call one wrapped function."""

    def __init__(self, config: str | None) -> None:
        if config is not None:
            from msprobe.pytorch import PrecisionDebugger

            PrecisionDebugger(config_path=config)
        self._x = torch.randn(4)

    def __call__(self) -> dict[str, Any]:
        x = self._x
        begin = time.perf_counter()
        for _ in range(RELU_CALLS):
            torch.relu(x)
        return {"seconds": time.perf_counter() - begin, "tensor_bytes": 0, "records": 0}


def main() -> None:
    # Standard output belongs to the answers; whatever a tool prints goes nowhere.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    order = json.loads(sys.argv[1])
    work: Callable[[], dict[str, Any]]
    work = Relu(order["config"]) if order["work"] == "relu" else Training(order["config"], order["dump_path"])
    answers.write(json.dumps({"torch": torch.__version__}) + "\n")
    for _ in sys.stdin:
        answers.write(json.dumps(work()) + "\n")


if __name__ == "__main__":
    main()
