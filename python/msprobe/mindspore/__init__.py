"""The MindSpore side. Comparing needs no MindSpore, so importing this imports none."""

from typing import NoReturn

from msprobe.core.common.not_here import refuse


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
