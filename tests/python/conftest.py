"""What holds for all tests: the instructions PyTorch may use, also in the processes that tests start."""

import os

from demo.usable_isa import usable_isa

_isa = usable_isa()
if _isa is not None:
    os.environ["ONEDNN_MAX_CPU_ISA"] = _isa
