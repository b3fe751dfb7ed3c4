"""Names that scripts import from here."""

from msprobe.core.common.exceptions import CompareException

__all__ = ["CompareException"]
