"""What used to be missing: operators, recomputed calls under transformers, names nobody can write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.collection import runs

OPERATORS = """
x = torch.tensor([4.0, -2.0], requires_grad=True)
y = x * 1
mask = torch.tensor([True, False])
bits = torch.tensor([5, 3])
debugger.start()
y /= 2
bits //= 1
y **= 1
z = -y
z = abs(z)
z = +z
m = ~mask
m = True & mask
z = 1 / z
z.neg()
z.sum().backward()
debugger.stop()
debugger.step()
result(x.grad.tolist())
"""


def test_operators(tmp_path: Path) -> None:
    run = runs.run_script(tmp_path, OPERATORS, runs.config("L1")).ok()
    data = run.data()
    # What backward begins with is none of them.
    names = [name.removesuffix(".forward") for name in data if name.endswith(".forward")]
    names.remove("Torch.ones_like.0")
    assert names == [
        "Tensor.__itruediv__.0", "Tensor.__ifloordiv__.0", "Tensor.__ipow__.0", "Tensor.__neg__.0",
        "Tensor.__abs__.0", "Tensor.__pos__.0", "Tensor.__invert__.0", "Tensor.__rand__.0",
        "Tensor.reciprocal.0", "Tensor.__mul__.0", "Tensor.neg.0", "Tensor.sum.0",
    ]  # fmt: skip
    assert data["Tensor.__itruediv__.0.forward"]["input_args"][0]["Max"] == 4.0
    assert data["Tensor.__itruediv__.0.forward"]["output"][0]["Max"] == 2.0
    assert "Tensor.__neg__.0.backward" in data


RECOMPUTED = """
import os, warnings
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=16, hidden_size=8, intermediate_size=16, num_hidden_layers=2,
                                     num_attention_heads=2, num_key_value_heads=2, use_cache=False))
model.train()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
debugger = PrecisionDebugger(config_path="./config.json")
ids = torch.arange(8).reshape(1, 8)
debugger.start(model)
model(input_ids=ids, labels=ids).loss.backward()
debugger.stop()
debugger.step()
result(torch.utils.checkpoint._enable_checkpoint_early_stop)
"""


def test_recomputed_calls_are_complete_under_transformers(tmp_path: Path) -> None:
    """transformers holds ``checkpoint`` from its import, which is before the debugger."""
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(
        '{"task": "statistics", "dump_path": "./dump", "level": "mix", "statistics": {}}'
    )
    run = runs.run_script(tmp_path, RECOMPUTED).ok()
    data = run.data()
    recomputed = [name for name, record in data.items() if record.get("is_recompute")]
    assert len([name for name in recomputed if "LlamaDecoderLayer" in name or ".mlp." in name]) >= 2
    assert len(recomputed) > 40
    assert [name for name in recomputed if not data[name].get("output")] == []
    assert run.printed() in (None, True)


SURROGATE = r"""
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        setattr(self, "layer\ud800", nn.Linear(2, 2))
        self.register_parameter("scale\udcff", nn.Parameter(torch.ones(2)))

    def forward(self, x):
        return getattr(self, "layer\ud800")(x) * getattr(self, "scale\udcff")

model = nn.Sequential(Odd())
debugger.start(model)
model(torch.ones(1, 2)).sum().backward()
debugger.stop()
debugger.step()
"""


def test_half_of_a_surrogate_pair_in_a_name(tmp_path: Path) -> None:
    run = runs.run_script(tmp_path, SURROGATE, runs.config("mix")).ok()
    assert run.errors() == []
    data = run.data()
    assert r"Module.0.layer\ud800.Linear.forward.0" in data
    assert r"Module.0.layer\ud800.Linear.backward.0" in data
    assert r"scale\udcff" in data["Module.0.Odd.forward.0"]["parameters"]
    assert r"scale\udcff" in data["Module.0.Odd.parameters_grad"]
