"""Runs graph commands of the reference 8.1.2: a list of jobs on stdin, one line for each on stdout.

Its command line imports more than graphs need, so its function is called.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from pathlib import Path

from msprobe.visualization.graph_service import (  # type: ignore[import-not-found]
    _graph_service_command,
)

for job in json.load(sys.stdin):
    flags = job["flags"]
    args = argparse.Namespace(
        framework="pytorch",
        input_path=job["input"],
        output_path=job["output"],
        layer_mapping=True if "-lm" in flags else None,
        overflow_check="-oc" in flags,
        fuzzy_match="-f" in flags,
        complete_stack="-cs" in flags,
    )
    result: dict[str, object] = {}
    start = time.perf_counter()
    # The reference logs to stdout.
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stdout(nothing):
        try:
            _graph_service_command(args)
        except BaseException as error:
            result["error"] = repr(error)
    result["seconds"] = time.perf_counter() - start
    print(json.dumps(result), flush=True)
