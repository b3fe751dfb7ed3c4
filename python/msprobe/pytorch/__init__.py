"""Collection from PyTorch: the names that training scripts import. Importing this imports torch."""

from msprobe.pytorch.debugger.precision_debugger import PrecisionDebugger, module_dump, module_dump_end
from msprobe.pytorch.seed import seed_all

__all__ = ["PrecisionDebugger", "module_dump", "module_dump_end", "seed_all"]
