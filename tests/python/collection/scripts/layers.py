"""Every layer of torch.nn without a debugger, and with one that is made, started and stopped: digests."""

from __future__ import annotations

import copy
import functools
import sys
import warnings
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from tests.python.collection.scripts.attach import attach, digest, result

Layer = tuple[Callable[[], nn.Module], Callable[[], tuple[Any, ...]]]

# Without a forward of their own, or with nothing but what others of the table do.
NOT_CALLED = {
    "Container", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "RNNBase",
    "RNNCellBase", "DataParallel", "SyncBatchNorm",
}  # fmt: skip


def rand(*shape: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (torch.randn(shape),)


def labels(*shape: int) -> torch.Tensor:
    return torch.arange(int(torch.tensor(shape).prod())).reshape(shape) % 3


SHAPES = {1: (2, 4, 8), 2: (2, 4, 8, 8), 3: (2, 4, 6, 6, 6)}


def of_dimensions() -> dict[str, Layer]:
    """Layers that come for one, two and three dimensions."""
    made: dict[str, Layer] = {}
    for n, shape in SHAPES.items():
        options: dict[str, tuple[Any, ...]] = {
            "AdaptiveAvgPool": (2,), "AdaptiveMaxPool": (2,), "AvgPool": (2,), "MaxPool": (2,),
            "LPPool": (2, 2), "BatchNorm": (4,), "InstanceNorm": (4,), "Conv": (4, 6, 3),
            "ConvTranspose": (4, 6, 3),
            "CircularPad": (1,), "ConstantPad": (1, 0.5), "ReflectionPad": (1,), "ReplicationPad": (1,),
            "ZeroPad": (1,), "Dropout": (), "LazyBatchNorm": (), "LazyInstanceNorm": (), "LazyConv": (6, 3),
            "LazyConvTranspose": (6, 3), "FractionalMaxPool": (2, 3),
        }  # fmt: skip
        for stem, arguments in options.items():
            name = f"{stem}{n}d"
            if hasattr(nn, name):
                made[name] = (functools.partial(getattr(nn, name), *arguments), rand(*shape))

        def unpool(n: int = n, shape: tuple[int, ...] = shape) -> tuple[Any, ...]:
            pooled, places = getattr(F, f"max_pool{n}d")(torch.randn(shape), 2, return_indices=True)
            return pooled, places

        made[f"MaxUnpool{n}d"] = (functools.partial(getattr(nn, f"MaxUnpool{n}d"), 2), unpool)
    made["FractionalMaxPool2d"] = (lambda: nn.FractionalMaxPool2d(2, output_size=3), rand(*SHAPES[2]))
    made["FractionalMaxPool3d"] = (lambda: nn.FractionalMaxPool3d(2, output_size=2), rand(*SHAPES[3]))
    return made


def of_one_input() -> dict[str, Layer]:
    plain = (
        "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid Mish PReLU "
        "RReLU ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink Dropout "
        "AlphaDropout FeatureAlphaDropout Flatten"
    )
    made: dict[str, Layer] = {
        name: (getattr(nn, name), rand(3, 4)) for name in plain.split() if hasattr(nn, name)
    }
    made |= {
        name: (functools.partial(getattr(nn, name), dim=-1), rand(3, 4))
        for name in ("GLU", "LogSoftmax", "Softmax", "Softmin")
    }
    made |= {
        "ChannelShuffle": (lambda: nn.ChannelShuffle(2), rand(1, 4, 2, 2)),
        "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(2), rand(1, 4, 3, 3)),
        "Embedding": (lambda: nn.Embedding(5, 4, padding_idx=0, max_norm=1.0), lambda: (labels(2, 3),)),
        "EmbeddingBag": (lambda: nn.EmbeddingBag(5, 4), lambda: (labels(2, 3),)),
        "Fold": (lambda: nn.Fold((4, 5), (2, 2)), rand(2, 12, 12)),
        "GroupNorm": (lambda: nn.GroupNorm(2, 4), rand(2, 4, 3)),
        "GRU": (lambda: nn.GRU(4, 5, 2, bidirectional=True), rand(3, 2, 4)),
        "GRUCell": (lambda: nn.GRUCell(4, 5), rand(2, 4)),
        "LSTM": (lambda: nn.LSTM(4, 5, 2, dropout=0.3), rand(3, 2, 4)),
        "LSTMCell": (lambda: nn.LSTMCell(4, 5), rand(2, 4)),
        "RNN": (lambda: nn.RNN(4, 5, nonlinearity="relu"), rand(3, 2, 4)),
        "RNNCell": (lambda: nn.RNNCell(4, 5), rand(2, 4)),
        "LayerNorm": (lambda: nn.LayerNorm(4), rand(3, 4)),
        "RMSNorm": (lambda: nn.RMSNorm(4), rand(3, 4)),
        "LazyLinear": (lambda: nn.LazyLinear(3), rand(2, 4)),
        "Linear": (lambda: nn.Linear(4, 3), rand(2, 4)),
        "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), rand(1, 4, 3, 3)),
        "PixelShuffle": (lambda: nn.PixelShuffle(2), rand(1, 4, 2, 2)),
        "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), rand(1, 1, 4, 4)),
        "Sequential": (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Tanh()), rand(2, 4)),
        "Softmax2d": (nn.Softmax2d, rand(1, 2, 3, 3)),
        "Threshold": (lambda: nn.Threshold(0.1, -1.0), rand(3, 4)),
        "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), rand(3, 4)),
        "Unfold": (lambda: nn.Unfold((2, 2)), rand(1, 2, 4, 4)),
        "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bicubic"), rand(1, 2, 3, 3)),
        "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d(scale_factor=2), rand(1, 2, 3, 3)),
        "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(scale_factor=2), rand(1, 2, 3, 3)),
    }
    return made


def of_several_inputs() -> dict[str, Layer]:
    def same(n: int = 2) -> Callable[[], tuple[Any, ...]]:
        return lambda: tuple(torch.randn(3, 4) for _ in range(n))

    def signs() -> torch.Tensor:
        return torch.tensor([1.0, -1.0, 1.0])

    losses = "MSELoss L1Loss SmoothL1Loss HuberLoss CosineSimilarity PairwiseDistance KLDivLoss"
    made: dict[str, Layer] = {name: (getattr(nn, name), same()) for name in losses.split()}
    made |= {
        "AdaptiveLogSoftmaxWithLoss": (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4]),
            lambda: (torch.randn(3, 4), labels(3)),
        ),
        "BCELoss": (nn.BCELoss, lambda: (torch.rand(3, 4), torch.rand(3, 4))),
        "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, lambda: (torch.randn(3, 4), torch.rand(3, 4))),
        "Bilinear": (lambda: nn.Bilinear(4, 4, 2), same()),
        "CosineEmbeddingLoss": (
            nn.CosineEmbeddingLoss,
            lambda: (torch.randn(3, 4), torch.randn(3, 4), signs()),
        ),
        "CrossEntropyLoss": (
            lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
            lambda: (torch.randn(3, 4), labels(3)),
        ),
        "CTCLoss": (
            nn.CTCLoss,
            lambda: (
                torch.randn(6, 2, 4).log_softmax(-1),
                labels(2, 3) + 1,
                torch.tensor([6, 6]),
                torch.tensor([3, 2]),
            ),
        ),
        "GaussianNLLLoss": (
            nn.GaussianNLLLoss,
            lambda: (torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4)),
        ),
        "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, lambda: (torch.randn(3), signs())),
        "MarginRankingLoss": (nn.MarginRankingLoss, lambda: (torch.randn(3), torch.randn(3), signs())),
        "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, lambda: (torch.randn(3, 4), labels(3, 4))),
        "MultiLabelSoftMarginLoss": (
            nn.MultiLabelSoftMarginLoss,
            lambda: (torch.randn(3, 4), labels(3, 4) % 2.0),
        ),
        "MultiMarginLoss": (nn.MultiMarginLoss, lambda: (torch.randn(3, 4), labels(3))),
        "MultiheadAttention": (
            lambda: nn.MultiheadAttention(8, 2, batch_first=True),
            lambda: (torch.randn(2, 3, 8),) * 3,
        ),
        "NLLLoss": (nn.NLLLoss, lambda: (torch.randn(3, 4).log_softmax(-1), labels(3))),
        "NLLLoss2d": (nn.NLLLoss2d, lambda: (torch.randn(2, 4, 2, 2), labels(2, 2, 2))),
        "PoissonNLLLoss": (nn.PoissonNLLLoss, lambda: (torch.randn(3, 4), torch.rand(3, 4))),
        "SoftMarginLoss": (nn.SoftMarginLoss, lambda: (torch.randn(3), signs())),
        "TripletMarginLoss": (nn.TripletMarginLoss, same(3)),
        "TripletMarginWithDistanceLoss": (nn.TripletMarginWithDistanceLoss, same(3)),
        "Transformer": (
            lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True),
            lambda: (torch.randn(2, 3, 8), torch.randn(2, 4, 8)),
        ),
        "TransformerDecoder": (
            lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2),
            lambda: (torch.randn(2, 3, 8), torch.randn(2, 4, 8)),
        ),
        "TransformerDecoderLayer": (
            lambda: nn.TransformerDecoderLayer(8, 2, 16, activation=F.gelu, batch_first=True),
            lambda: (torch.randn(2, 3, 8), torch.randn(2, 4, 8)),
        ),
        "TransformerEncoderLayer": (
            lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
            rand(2, 3, 8),
        ),
        "TransformerEncoder": (
            lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
            lambda: (
                torch.randn(2, 3, 8),
                None,
                torch.tensor([[False, False, True], [False, True, True]]),
            ),
        ),
    }
    if hasattr(nn, "LinearCrossEntropyLoss"):
        made["LinearCrossEntropyLoss"] = (
            lambda: nn.LinearCrossEntropyLoss(4, 6),
            lambda: (torch.randn(3, 4), labels(3)),
        )
    return made


# Functions somebody holds from before: as default arguments, in tables, by name.
HELD = {"relu": F.relu, "gelu": F.gelu}


def encoder(name: str) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation=HELD[name], batch_first=True)
    return nn.TransformerEncoder(layer, 2)


VARIANTS: dict[str, Layer] = {
    f"encoder with {name} held from before": (
        functools.partial(encoder, name),
        lambda: (torch.randn(2, 3, 8), None, torch.tensor([[False, False, True], [False, True, True]])),
    )
    for name in HELD
}
LAYERS = {**of_dimensions(), **of_one_input(), **of_several_inputs(), **VARIANTS}


def flat(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value.to_padded_tensor(0.0) if value.is_nested else value]
    return [tensor for each in value for tensor in flat(each)] if isinstance(value, (list, tuple)) else []


def run(layer: nn.Module, name: str) -> str:
    """All outputs and gradients, and what torch has to say, in training and in evaluation."""
    told: list[Any] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for training in (True, False):
            torch.manual_seed(5)
            layer.train(training)
            inputs = LAYERS[name][1]()
            with torch.set_grad_enabled(training):
                outputs = flat(layer(*inputs))
            told += [output.detach().clone() for output in outputs]
            if training and outputs and any(output.requires_grad for output in outputs):
                sum(output.sum() for output in outputs if output.requires_grad).backward()
                told += [parameter.grad for parameter in layer.parameters()]
    texts = sorted(str(each.message) for each in caught)
    return digest([*told, torch.get_rng_state()]) + "|" + "|".join(texts)


def build(name: str) -> nn.Module:
    torch.manual_seed(3)
    return LAYERS[name][0]()


def again(layer: nn.Module, name: str) -> nn.Module:
    """A layer that was built earlier, as it was then. Lazy ones have nothing yet that could be copied."""
    return build(name) if isinstance(layer, LazyModuleMixin) else copy.deepcopy(layer)


def main(mode: str) -> None:
    # Not only the first time: what torch warns about tells which way it took.
    torch.set_warn_always(True)
    earlier = {name: build(name) for name in LAYERS}
    told: dict[str, dict[str, str]] = {name: {} for name in LAYERS}

    def note(when: str) -> None:
        for name in LAYERS:
            told[name][when] = run(build(name), name)
            told[name][f"{when}, built before"] = run(again(earlier[name], name), name)

    note("absent")
    debugger = attach(mode)
    note("made")
    debugger.start(nn.Sequential(nn.Linear(2, 2)))
    note("started")
    debugger.stop()
    note("stopped")
    debugger.step()
    note("ended")
    public = {
        name for name, each in vars(nn).items() if isinstance(each, type) and issubclass(each, nn.Module)
    }
    result({"layers": told, "missing": sorted(public - set(LAYERS) - NOT_CALLED)})


if __name__ == "__main__":
    main(sys.argv[1])
