"""The debugger at the import path scripts already use."""

from msprobe.pytorch.debugger.precision_debugger import PrecisionDebugger

__all__ = ["PrecisionDebugger"]
