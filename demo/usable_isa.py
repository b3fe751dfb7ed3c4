"""The instructions PyTorch may use: prints a name for the variable ``ONEDNN_MAX_CPU_ISA``, or nothing.

Some virtual machines claim matrix instructions (AMX) that they cannot execute. There PyTorch dies of an
illegal instruction as soon as it multiplies in bfloat16, with or without msprobe.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROBE = "import torch; torch.ones(64, 64, dtype=torch.bfloat16) @ torch.ones(64, 64, dtype=torch.bfloat16)"
WITHOUT_AMX = "AVX512_CORE_FP16"


def usable_isa() -> str | None:
    """A limit that has to be set before PyTorch is imported, if there has to be one."""
    try:
        claims_amx = "amx_bf16" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return None
    if not claims_amx or "ONEDNN_MAX_CPU_ISA" in os.environ:
        return None
    probe = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False)
    return WITHOUT_AMX if probe.returncode < 0 else None


if __name__ == "__main__":
    print(usable_isa() or "")
