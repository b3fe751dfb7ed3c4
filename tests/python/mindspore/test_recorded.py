"""What the reference recorded of MindSpore, value by value."""

from __future__ import annotations

from pathlib import Path

import pytest

from .recorded import check_case, run_case

CASES = [
    "l1_statistics",
    "l0_tensor_nested",
    "mix_md5",
    "dtype_edges",
    "debug_save",
    "overflow_l1",
    "structure_mix",
    "list_filter_mix",
    "scope_l1",
    "model_list",
    "custom_api_and_init_step",
    "l1_jit_ms27",
]


@pytest.mark.parametrize("name", CASES)
def test_recorded_case(name: str, tmp_path: Path) -> None:
    said = run_case(name, tmp_path)
    check_case(name, tmp_path)
    if name in ("overflow_l1", "custom_api_and_init_step"):
        assert said.count("msprobe ends successfully.") == 1
    if name == "overflow_l1":
        assert "msprobe is collecting data on Functional.div.0.forward. Overflow detected." in said
    if name == "debug_save":
        assert "PrecisionDebugger.save variable type not valid" in said
