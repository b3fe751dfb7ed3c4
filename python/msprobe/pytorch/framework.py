"""What PyTorch calls its things in a dump and in a configuration."""

from __future__ import annotations

from msprobe.core.framework import Framework

PYTORCH = Framework(
    name="pytorch",
    tensor_type="torch.Tensor",
    size_type="torch.Size",
    tensor_format="pt",
    # As the reference has them, which has one list for all frameworks. ``MindSpeed`` is not among them.
    api_prefixes=(
        "Distributed",
        "Functional",
        "Torch",
        "Tensor",
        "Mint",
        "MintFunctional",
        "Primitive",
        "Aten",
        "VF",
        "NPU",
        "Jit",
    ),
    foreign_keys=(
        ("device", "MindSpore's static graphs"),
        ("precision", "MindSpore's static graphs and newer versions"),
    ),
)
