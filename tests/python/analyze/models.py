"""Collects a step of a small model in a process of its own: ``models.py CASE LEVEL FOLDER``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Callable

import torch

from msprobe.pytorch import PrecisionDebugger


class _MakeNan(torch.autograd.Function):  # type: ignore[misc]
    """Passes values on, and makes NaN of their gradients."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
        return values.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * float("nan")


class Spoil(torch.nn.Module):  # type: ignore[misc]
    """A layer whose backward is wrong."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = _MakeNan.apply(values)
        return result


def gpt2() -> tuple[torch.nn.Module, Callable[[], torch.Tensor]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=50, n_positions=16)
    model = GPT2LMHeadModel(config)
    mlp = model.transformer.h[1].mlp
    mlp.act = torch.nn.Sequential(mlp.act, Spoil())
    tokens = torch.randint(0, 50, (2, 8))
    return model, lambda: model(input_ids=tokens, labels=tokens).loss


def t5() -> tuple[torch.nn.Module, Callable[[], torch.Tensor]]:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0
    )
    model = T5ForConditionalGeneration(config)
    dense = model.decoder.block[1].layer[2].DenseReluDense
    dense.act = torch.nn.Sequential(dense.act, Spoil())
    tokens = torch.randint(1, 50, (2, 8))
    return model, lambda: model(input_ids=tokens, labels=tokens).loss


def scaled() -> tuple[torch.nn.Module, Callable[[], torch.Tensor]]:
    """float16 with a scaled loss: the gradient of a weight is too large, those of its module are not."""
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    inputs = torch.full((4, 16), 500.0)

    def loss() -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            outputs = model(inputs)
        result: torch.Tensor = scaler.scale(outputs.float().sum())
        return result

    return model, loss


CASES = {"gpt2": gpt2, "t5": t5, "scaled": scaled}


def main(case: str, level: str, folder: Path) -> None:
    torch.manual_seed(0)
    model, loss = CASES[case]()
    config = folder / "config.json"
    config.write_text(json.dumps({"task": "statistics", "dump_path": str(folder / "dump"), "level": level}))
    debugger = PrecisionDebugger(str(config))
    debugger.start(model)
    loss().backward()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
