"""What the constructor and others refuse, each attempt in a fork of its own, told as one JSON line."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any, Callable

from tests.python.collection.golden import log_lines
from tests.python.collection.scripts.attach import result


def outcome(call: Callable[[], Any]) -> dict[str, Any]:
    """Exception class, code and text, or none; and the log. In a fork: the tool is made once per process."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        told: dict[str, Any] = {}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                call()
            except Exception as error:
                told = {
                    "exception": type(error).__name__,
                    "code": getattr(error, "code", None),
                    "text": str(error),
                }
        told["log"] = log_lines(printed.getvalue())
        os.write(writer, json.dumps(told).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.wait()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def main(cases: list[dict[str, Any]]) -> None:
    pytorch = importlib.import_module("msprobe.pytorch")

    def make(settings: Any, **keys: Any) -> Any:
        Path("cfgtmp").mkdir(exist_ok=True)
        Path("cfgtmp/config.json").write_text(json.dumps(settings))
        return pytorch.PrecisionDebugger(config_path="./cfgtmp/config.json", **keys)

    def dumped(path: str) -> None:
        debugger = make({"task": "statistics", "dump_path": path, "level": "L1"})
        debugger.start()
        debugger.stop()

    plain = {"task": "statistics", "dump_path": "./dump", "level": "L1"}
    Path("link").symlink_to(".", target_is_directory=True)
    Path("real.json").write_text(json.dumps(plain))
    Path("link.json").symlink_to("real.json")
    Path("config.txt").write_text(json.dumps(plain))
    Path("broken.json").write_text("{")
    debugger = pytorch.PrecisionDebugger
    attempts: dict[str, Callable[[], Any]] = {
        **{
            f"config {case['name']}": functools.partial(make, case["config"], **case["kwargs"])
            for case in cases
        },
        "not a string": lambda: debugger(config_path=3),
        "absent": lambda: debugger(config_path="./absent.json"),
        "symlink": lambda: debugger(config_path="./link.json"),
        "suffix": lambda: debugger(config_path="./config.txt"),
        "broken": lambda: debugger(config_path="./broken.json"),
        "special characters": lambda: dumped("./du mp"),
        "start before": lambda: debugger.start(),
        "model missing": lambda: make({**plain, "level": "mix"}).start(),
        "model wrong": lambda: make({**plain, "level": "mix"}).start(model=3),
        "seed": lambda: pytorch.seed_all(seed=-1),
        "seed mode": lambda: pytorch.seed_all(mode="yes"),
        "module_dump before": lambda: pytorch.module_dump_end(),
    }
    result({name: outcome(call) for name, call in attempts.items()})


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
