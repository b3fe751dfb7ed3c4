"""The ``msprobe`` command: hands the command line over to Rust, unless it runs operators of a framework."""

from __future__ import annotations

import signal
import sys

from msprobe import _native
from msprobe.core.precheck.command import python_command, run


def main() -> int:
    found = python_command(sys.argv[1:])
    if found is not None:
        return run(found)
    # Rust does the work, so Ctrl-C must end the process as it would end the binary.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.run_cli(["msprobe", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
