"""Nine small Hugging Face models with random weights, and a training step of each in three kinds of numbers.

Nothing is downloaded. Weights are as large as trained ones are: every layer takes values of about one and
returns values of about one, so that what is rounded, and what a fault does, is as in a real training.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from ..faults.models import Batch, hugging_face

VOCABULARY = 97
COUNT = 2
IMAGES = 4
LENGTH = 16
WIDTH = 128
HEADS = 4
LABELS = 10
PIXELS = 32
# What the loss is multiplied by in 16 bits, so that small gradients are not lost.
LOSS_SCALE = 1024.0

DTYPES = ("float32", "bfloat16", "float16_autocast")


def _tokens(count: int = COUNT, length: int = LENGTH) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (count, length))


def _text() -> Batch:
    ids = _tokens()
    return {"input_ids": ids, "labels": ids.clone()}


def _images() -> Batch:
    return {
        "pixel_values": torch.randn(IMAGES, 3, PIXELS, PIXELS),
        "labels": torch.randint(0, LABELS, (IMAGES,)),
    }


_DECODER: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.09,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "use_cache": False,
}


def llama(attention: str) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.LlamaConfig(**_DECODER, attn_implementation=attention)
    return transformers.LlamaForCausalLM(config), _text()


def qwen2(attention: str) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.Qwen2Config(**_DECODER, attn_implementation=attention)
    return transformers.Qwen2ForCausalLM(config), _text()


def mixtral(attention: str) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.MixtralConfig(
        **_DECODER,
        num_local_experts=4,
        num_experts_per_tok=2,
        attn_implementation=attention,
        experts_implementation="eager",
    )
    return transformers.MixtralForCausalLM(config), _text()


def gpt2(attention: str) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=64,
        n_embd=WIDTH,
        n_layer=2,
        n_head=HEADS,
        n_inner=2 * WIDTH,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        initializer_range=0.09,
        bos_token_id=1,
        eos_token_id=2,
        use_cache=False,
        attn_implementation=attention,
    )
    return transformers.GPT2LMHeadModel(config), _text()


def bert(attention: str) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.09,
        attn_implementation=attention,
    )
    mask = torch.ones(COUNT, LENGTH, dtype=torch.long)
    mask[1, LENGTH - 5 :] = 0
    return transformers.BertForMaskedLM(config), {**_text(), "attention_mask": mask}


def t5(attention: str) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.T5Config(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        d_kv=WIDTH // HEADS,
        d_ff=2 * WIDTH,
        num_layers=2,
        num_heads=HEADS,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        use_cache=False,
        attn_implementation=attention,
    )
    return transformers.T5ForConditionalGeneration(config), {"input_ids": _tokens(), "labels": _tokens()}


def vit(attention: str) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.ViTConfig(
        image_size=PIXELS,
        patch_size=8,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=2 * WIDTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.09,
        num_labels=LABELS,
        attn_implementation=attention,
    )
    return transformers.ViTForImageClassification(config), _images()


def convnext(attention: str) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.ConvNextConfig(
        image_size=PIXELS,
        patch_size=4,
        num_stages=2,
        hidden_sizes=[WIDTH, 2 * WIDTH],
        depths=[1, 1],
        layer_scale_init_value=0.5,
        initializer_range=0.09,
        num_labels=LABELS,
    )
    return transformers.ConvNextForImageClassification(config), _images()


def resnet(attention: str) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.ResNetConfig(
        embedding_size=WIDTH,
        hidden_sizes=[WIDTH, 2 * WIDTH],
        depths=[1, 1],
        layer_type="basic",
        num_labels=LABELS,
    )
    return transformers.ResNetForImageClassification(config), _images()


MODELS: dict[str, Callable[[str], tuple[nn.Module, Batch]]] = {
    "llama": llama,
    "qwen2": qwen2,
    "mixtral": mixtral,
    "gpt2": gpt2,
    "bert": bert,
    "t5": t5,
    "vit": vit,
    "convnext": convnext,
    "resnet": resnet,
}
IMAGE_MODELS = ("vit", "convnext", "resnet")
CONVOLUTIONAL = ("convnext", "resnet")


def build(name: str, dtype: str, seed: int, attention: str = "eager") -> tuple[nn.Module, Batch]:
    """The same bits every time. Biases and factors get values, as trained ones have."""
    torch.manual_seed(seed)
    model, batch = MODELS[name](attention)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if parameter.dim() == 1:
                spread = 0.3 if path.endswith("bias") else 0.1
                parameter.add_(torch.randn_like(parameter), alpha=spread)
    if dtype == "bfloat16":
        model = model.to(torch.bfloat16)
        batch = {key: x.to(torch.bfloat16) if x.is_floating_point() else x for key, x in batch.items()}
    return model.train(), batch


def precision(dtype: str) -> AbstractContextManager[Any]:
    """What forward runs in."""
    if dtype == "float16_autocast":
        context: AbstractContextManager[Any] = torch.autocast("cpu", dtype=torch.float16)
        return context
    return nullcontext()


def loss_of(model: nn.Module, batch: Batch, dtype: str, is_cached: bool) -> torch.Tensor:
    """Forward. With a cache, the second half of the tokens looks back at what the first left there."""
    with precision(dtype):
        if not is_cached:
            loss: torch.Tensor = model(**batch).loss
            return loss
        ids, labels = batch["input_ids"], batch["labels"]
        half = ids.shape[1] // 2
        first = model(input_ids=ids[:, :half], use_cache=True)
        second = model(
            input_ids=ids[:, half:],
            labels=labels[:, half:],
            past_key_values=first.past_key_values,
            use_cache=True,
        )
        loss = second.loss
        return loss


def train_step(
    model: nn.Module, batch: Batch, dtype: str, optimizer: torch.optim.Optimizer, is_cached: bool = False
) -> None:
    """One step, with gradients scaled where numbers have 16 bits and five of them are the exponent."""
    loss = loss_of(model, batch, dtype, is_cached)
    if dtype == "float16_autocast":
        scaler = torch.amp.GradScaler("cpu", init_scale=LOSS_SCALE)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
