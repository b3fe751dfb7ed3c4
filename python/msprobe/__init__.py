"""Numerical-accuracy debugger for deep-learning training.

Importing this package imports no framework; each adapter imports its own when it is used.
"""

from msprobe._native import __version__

__all__ = ["__version__"]
