"""Numerical-accuracy debugger for deep-learning training.

Importing this package imports nothing else: no framework, and not the compiled core. Each part loads what it
needs when it is used. Only another package of this name in the environment is looked for, and warned of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msprobe._other_install import warn_of_other

__all__ = ["GradComparator", "__version__"]

if TYPE_CHECKING:
    from msprobe._native import __version__
    from msprobe.core.grad_probe.grad_compare import GradComparator
else:

    def __getattr__(name: str) -> object:
        # The core knows the version. A script that only asks whether to collect does not need it loaded.
        if name == "__version__":
            from msprobe import _native

            return _native.__version__
        if name == "GradComparator":
            from msprobe.core.grad_probe.grad_compare import GradComparator

            return GradComparator
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


warn_of_other()
