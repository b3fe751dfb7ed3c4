"""What MindSpore calls its things in a dump and in a configuration."""

from __future__ import annotations

from msprobe.core.framework import Framework

MINDSPORE = Framework(
    name="mindspore",
    tensor_type="mindspore.Tensor",
    size_type="mindspore.Size",
    tensor_format="npy",
    # The reference forgot ``MintDistributed``.
    api_prefixes=(
        "Distributed",
        "Functional",
        "Torch",
        "Tensor",
        "Mint",
        "MintFunctional",
        "MintDistributed",
        "Primitive",
        "Aten",
        "VF",
        "NPU",
        "Jit",
    ),
    tells_autograd=False,
    tells_places=False,
    measures_singles=True,
)

MINDTORCH = MINDSPORE._replace(name="mindtorch")
"""PyTorch's functions on MindSpore's tensors."""
