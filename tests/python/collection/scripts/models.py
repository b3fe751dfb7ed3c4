"""Small models of every construction that hooks have been known to disturb."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):  # type: ignore[misc]
    """Separate q, k, v, as large models have them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, x: Any, mask: Any = None) -> Any:
        batch, length, width = x.shape
        parts = (
            f(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        q, k, v = parts
        scores = torch.matmul(q, k.transpose(-1, -2)) / (width // self.heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        weights = F.dropout(F.softmax(scores, dim=-1), 0.1, self.training)
        return self.out(torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, 2)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Any) -> Any:
        length = x.shape[1]
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
        x = x + self.attention(self.norm(x), mask=mask)
        return x + self.mlp(x)


class Recomputed(nn.Module):  # type: ignore[misc]
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 4)
        self.drop = nn.Dropout(0.3)

    def inner(self, x: Any) -> Any:
        return self.drop(F.relu(self.second(x)))

    def forward(self, x: Any) -> Any:
        return checkpoint(self.inner, self.first(x), use_reentrant=self.reentrant)


class InPlace(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 4)
        self.act = nn.ReLU(inplace=True)
        self.slope = nn.LeakyReLU(0.1, inplace=True)

    def forward(self, x: Any) -> Any:
        h = self.act(self.first(x))
        h = h * 2
        h.add_(1.0).mul_(0.5)
        y = self.second(h)
        y += 0.25
        y[:, 0] = y[:, 1] * 2
        return self.slope(y)


class Views(nn.Module):  # type: ignore[misc]
    """Modules that return their input, views of it, several of them, or containers."""

    def __init__(self) -> None:
        super().__init__()
        self.same, self.flat = nn.Identity(), nn.Flatten()
        self.lstm = nn.LSTM(3, 5, batch_first=True)
        self.head = nn.Linear(5, 4)

    def forward(self, x: Any) -> Any:
        x = self.same(x)
        x = self.flat(x.view(x.shape[0], 2, 3)).view(x.shape[0], 2, 3)
        out, (hidden, _) = self.lstm(x)
        return self.head(out[:, -1] + hidden[0])


def conv() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1),
        nn.BatchNorm2d(3),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(27, 4),
    )


def mlp() -> Any:
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 4))


def post_norm() -> Any:
    return nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.1, batch_first=True)


# name: (model, shape of the input)
MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "mlp": (mlp, (5, 6)),
    "post_norm": (post_norm, (2, 3, 8)),
    "attention": (lambda: nn.Sequential(Block(8), Block(8)), (2, 3, 8)),
    "conv": (conv, (2, 1, 6, 6)),
    "reentrant": (lambda: Recomputed(True), (5, 6)),
    "non_reentrant": (lambda: Recomputed(False), (5, 6)),
    "in_place": (InPlace, (5, 6)),
    "lstm": (Views, (5, 6)),
}
