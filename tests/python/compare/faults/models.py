"""The models that are trained twice: three tiny Hugging Face ones and two written here.

All are built from a seed and run on the CPU; every one returns its loss: one training step serves them all.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

Batch = dict[str, torch.Tensor]

SEED = 20261116
VOCABULARY = 97


def hugging_face() -> Any:
    """The library, imported only to train: it takes seconds, and the list of cases does not need it."""
    # Nothing is downloaded: without this it may ask the network for files it can do without.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    return importlib.import_module("transformers")


def tokens(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (batch, length))


def bert(
    attention: str = "eager", width: int = 48, length: int = 12, layers: int = 3
) -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=2 * width,
        max_position_embeddings=length + 2,
        num_labels=5,
        attn_implementation=attention,
    )
    model = transformers.BertForSequenceClassification(config)
    # Real masks hide something.
    mask = torch.ones(4, length, dtype=torch.long)
    mask[1, length // 2 :] = 0
    mask[3, -3:] = 0
    return model, {
        "input_ids": tokens(4, length),
        "attention_mask": mask,
        "labels": torch.randint(0, 5, (4,)),
    }


def gpt2(attention: str = "eager") -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=16,
        n_embd=48,
        n_layer=3,
        n_head=4,
        bos_token_id=1,
        eos_token_id=2,
        use_cache=False,
        attn_implementation=attention,
    )
    model = transformers.GPT2LMHeadModel(config)
    ids = tokens(4, 12)
    return model, {"input_ids": ids, "labels": ids.clone()}


def llama(attention: str = "eager") -> tuple[nn.Module, Batch]:
    transformers = hugging_face()
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32,
        bos_token_id=1,
        eos_token_id=2,
        use_cache=False,
        attn_implementation=attention,
    )
    model = transformers.LlamaForCausalLM(config)
    ids = tokens(4, 12)
    return model, {"input_ids": ids, "labels": ids.clone()}


class Normalise(nn.Module):  # type: ignore[misc]
    """Every image by its own largest value."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.div(images, torch.amax(torch.abs(images), dim=(1, 2, 3), keepdim=True))


class Crop(nn.Module):  # type: ignore[misc]
    """The middle of a picture: reading by ``[]`` is not recorded, only this module is."""

    first = 1

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        size = images.shape[-1] - 2
        last = self.first + size
        return images[..., self.first : last, self.first : last].contiguous()


class ConvNet(nn.Module):  # type: ignore[misc]
    """Convolutions with batch normalisation, and a small head."""

    def __init__(self) -> None:
        super().__init__()
        self.normalise = Normalise()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.act1 = nn.ReLU()
        self.crop = Crop()
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(16)
        self.act2 = nn.ReLU()
        self.pool = nn.AvgPool2d(2)
        self.head = nn.Sequential(nn.Linear(16 * 49, 32), nn.Tanh(), nn.Dropout(0.2), nn.Linear(32, 10))

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.crop(self.act1(self.bn1(self.conv1(self.normalise(images)))))
        x = self.pool(self.act2(self.bn2(self.conv2(x))))
        return F.cross_entropy(self.head(torch.flatten(x, 1)), labels)


def convnet() -> tuple[nn.Module, Batch]:
    return ConvNet(), {"images": torch.randn(6, 3, 16, 16), "labels": torch.randint(0, 10, (6,))}


class Attention(nn.Module):  # type: ignore[misc]
    """Attention of several heads, written out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def project(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))

    def weights(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return F.softmax(torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.shape[-1]), dim=-1)

    def merge(self, mixed: torch.Tensor) -> torch.Tensor:
        batch, _, length, _ = mixed.shape
        return mixed.transpose(1, 2).reshape(batch, length, -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x)
        return self.out(self.merge(torch.matmul(self.weights(q, k), v)))


class Contrast(nn.Module):  # type: ignore[misc]
    """The difference of two views of the same thing, with a logarithm that needs positive numbers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.left = nn.Linear(width, width)
        self.right = nn.Linear(width, width)

    def difference(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.sub(left, right)

    def argument(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gap = self.difference(self.left(x), self.right(x))
        return torch.log(torch.add(self.argument(gap), 1.0))


class Block(nn.Module):  # type: ignore[misc]
    """Attention and contrast, each with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, 4)
        self.norm2 = nn.LayerNorm(width)
        self.contrast = Contrast(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.add(x, self.attention(self.norm1(x)))
        return torch.add(x, self.contrast(self.norm2(x)))


class Former(nn.Module):  # type: ignore[misc]
    """A small transformer with attention of its own."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(torch.flatten(self.head(x), 0, 1), torch.flatten(labels))


def former(width: int = 32, length: int = 16, blocks: int = 3) -> tuple[nn.Module, Batch]:
    ids = tokens(4, length)
    return Former(width, blocks), {"ids": ids, "labels": ids.roll(-1, 1)}


# By the name cases use. The wide ones are large enough for torch to share work between threads.
MODELS: dict[str, Callable[[], tuple[nn.Module, Batch]]] = {
    "bert": bert,
    "bert_sdpa": lambda: bert("sdpa"),
    "bert_wide": lambda: bert(width=128, length=128, layers=1),
    "gpt2": gpt2,
    "gpt2_sdpa": lambda: gpt2("sdpa"),
    "llama": llama,
    "llama_sdpa": lambda: llama("sdpa"),
    "convnet": convnet,
    "former": former,
    "former_wide": lambda: former(128, 128, 1),
}


def build(name: str, train: bool) -> tuple[nn.Module, Batch]:
    """The same bits every time; parameters that start as zeros or ones get values, as trained ones have."""
    torch.manual_seed(SEED)
    model, batch = MODELS[name]()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.05)
    return model.train(train), batch


def train_step(model: nn.Module, batch: Batch, optimizer: torch.optim.Optimizer | None = None) -> None:
    result: Any = model(**batch)
    loss = result if isinstance(result, torch.Tensor) else result.loss
    loss.backward()
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad()
