"""Whether ``mindstudio-probe`` is installed beside this package: both own the import name ``msprobe``.

Runs at every import, so it lists the directories packages are installed in and reads nothing: about 0.1 ms.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

OTHER = "mindstudio-probe"
OURS = "msprobe-rs"


def find_other(paths: Iterable[str]) -> str | None:
    """The directory among these in which the other distribution is installed."""
    prefix = OTHER.replace("-", "_")
    for path in paths:
        # The directory of a script may hold any number of files, and no distribution.
        if not path.endswith(("site-packages", "dist-packages")):
            continue
        try:
            with os.scandir(path) as entries:
                names = [entry.name.replace("-", "_") for entry in entries if entry.name.endswith("-info")]
        except OSError:
            continue
        if any(name.startswith((f"{prefix}_", f"{prefix}.")) for name in names):
            return path
    return None


def warn_of_other() -> None:
    """Says what to do if the other distribution is there too. Raises nothing, whatever filters are set."""
    place = find_other(path for path in sys.path if isinstance(path, str))
    if place is None:
        return
    message = (
        f"{OTHER} is installed in {place}. It has the same import name as {OURS}, msprobe, and files of one "
        f"may have replaced those of the other. To keep {OURS}: pip uninstall -y {OTHER} {OURS}, then "
        f"install {OURS} again. To keep both: install each into a virtual environment of its own"
    )
    import warnings

    try:
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    except RuntimeWarning:
        print(f"warning: {message}", file=sys.stderr)
