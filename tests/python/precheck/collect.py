"""Collects a dump of one small model, in a process of its own: ``collect.py MODEL DTYPE TASK DIRECTORY``."""

from __future__ import annotations

import sys
from typing import Any, Callable

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    ResNetConfig,
    ResNetForImageClassification,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
)

from msprobe.pytorch import PrecisionDebugger, seed_all

VOCABULARY, LENGTH, BATCH = 128, 12, 2
DTYPES = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "amp": torch.float32,
}


def tokens() -> Any:
    return torch.randint(0, VOCABULARY, (BATCH, LENGTH))


def text(model: Any) -> Callable[[], Any]:
    ids, labels = tokens(), tokens()
    return lambda: model(input_ids=ids, labels=labels).loss


def picture(model: Any, size: int) -> Callable[[], Any]:
    pixels = torch.randn(BATCH, 3, size, size).to(next(model.parameters()).dtype)
    labels = torch.tensor([1, 0])
    return lambda: model(pixel_values=pixels, labels=labels).loss


def gpt2() -> tuple[Any, Callable[[], Any]]:
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=2))
    return model, text(model)


def llama() -> tuple[Any, Callable[[], Any]]:
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    )
    return model, text(model)


def bert() -> tuple[Any, Callable[[], Any]]:
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
        )
    )
    return model, text(model)


def t5() -> tuple[Any, Callable[[], Any]]:
    model = T5ForConditionalGeneration(
        T5Config(
            vocab_size=VOCABULARY,
            d_model=32,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=0,
        )
    )
    return model, text(model)


def vit() -> tuple[Any, Callable[[], Any]]:
    model = ViTForImageClassification(
        ViTConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            image_size=32,
            patch_size=8,
        )
    )
    return model, lambda: picture(model, 32)()


def resnet() -> tuple[Any, Callable[[], Any]]:
    model = ResNetForImageClassification(
        ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    )
    return model, lambda: picture(model, 32)()


MODELS: dict[str, Callable[[], tuple[Any, Callable[[], Any]]]] = {
    "gpt2": gpt2,
    "llama": llama,
    "bert": bert,
    "t5": t5,
    "vit": vit,
    "resnet": resnet,
}


def main(name: str, dtype: str, task: str, directory: str, seed: int = 1234) -> None:
    seed_all(seed)
    model, loss = MODELS[name]()
    model.to(DTYPES[dtype]).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    debugger = PrecisionDebugger(dump_path=directory, task=task, level="L1", step=[0])
    debugger.start(model=model)
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "amp"):
        value = loss()
    value.backward()
    if dtype != "fp16":
        # Moments of Adam are below the smallest float16: whoever trains in it keeps them in float32.
        optimizer.step()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4])
