"""The names that training scripts import, and comparison. Importing this imports torch."""

from typing import NoReturn

# `compare` is also a package, bound to its name here when it is first imported, which is now. Then the
# function takes the name and keeps it, because a package that is loaded is not bound again.
from msprobe.core.common.not_here import refuse
from msprobe.pytorch.compare.distributed_compare import compare_distributed
from msprobe.pytorch.compare.pt_compare import compare
from msprobe.pytorch.debugger.precision_debugger import PrecisionDebugger, module_dump, module_dump_end
from msprobe.pytorch.perturbed import perturbed
from msprobe.pytorch.seed import seed_all

__all__ = [
    "PrecisionDebugger",
    "compare",
    "compare_distributed",
    "module_dump",
    "module_dump_end",
    "perturbed",
    "seed_all",
]


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
