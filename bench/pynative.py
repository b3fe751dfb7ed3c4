"""What collection from MindSpore costs, and how fast the text of a graph is read.

Each row is a process of its own: without any tool, with our package, and with the reference where
``.venv-mindspore-reference`` has one. Medians of steps are compared. A step is forward, backward and
optimizer; ``start``, ``stop`` and ``step`` count.

Run from the root with ``.venv-mindspore/bin/python -m bench.pynative``. ``--quick`` takes fewer steps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / ".venv-mindspore-reference/bin/python"
LIMITS = {"L0": 1.5, "L1": 2.0, "mix": 2.5}
IR_MEGABYTES = 64
LEAST_RATE = 50.0


def worker(
    python: str, config: str | None, steps: int, *, idle: bool = False, reference: bool = False
) -> Any:
    options = {"config": config, "steps": steps, "idle": idle, "reference": reference}
    environment = {**os.environ, "GLOG_v": "3", "MSPROBE_LOG_LEVEL": "4"}
    command = [python, str(ROOT / "bench/pynative_worker.py"), json.dumps(options)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def configured(folder: Path, level: str) -> str:
    path = folder / f"{level}.json"
    path.write_text(json.dumps({"task": "statistics", "dump_path": str(folder / level), "level": level}))
    return str(path)


def ir_rate(folder: Path) -> float:
    """Megabytes a second of a large graph text, from start of the command to its end."""
    case = ROOT / "tests/golden/dump_mindspore/code_mapping_npy"
    text = (case / "trace_code_graph_0.ir").read_text()
    copies = IR_MEGABYTES * 1_000_000 // len(text) + 1
    path = folder / "large.ir"
    with path.open("w") as file:
        for number in range(copies):
            # Each copy has nodes of its own.
            file.write(text.replace("(CNode_", f"(CNode_{number}_").replace("-op0", f"-op{number}"))
    command = [str(ROOT / "target/release/msprobe"), "code_mapping", "--ir", str(path)]
    begin = time.perf_counter()
    subprocess.run(
        [*command, "--dump_data", str(case / "dump"), "-o", str(folder)], check=True, capture_output=True
    )
    return path.stat().st_size / 1e6 / (time.perf_counter() - begin)


def main() -> int:
    steps = 10 if "--quick" in sys.argv else 40
    fails = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = worker(sys.executable, None, steps)
        print(f"a step without any tool: {bare['step'] * 1e3:.2f} ms")
        for level, most in LIMITS.items():
            config = configured(folder, level)
            ours = worker(sys.executable, config, steps)["step"]
            times = ours / bare["step"]
            line = (
                f"statistics {level}: {ours * 1e3:.2f} ms, {times:.2f} times the bare step (at most {most})"
            )
            if REFERENCE.exists():
                theirs = worker(str(REFERENCE), config, max(steps // 4, 3), reference=True)["step"]
                less = (theirs - bare["step"]) / max(ours - bare["step"], 1e-9)
                line += f"; reference {theirs * 1e3:.1f} ms, we add {less:.0f} times less (at least 10)"
                fails += less < 10
            fails += times > most
            print(line)
        idle = worker(sys.executable, configured(folder, "mix"), steps, idle=True)
        above = (idle["call"] - bare["call"]) * 1e6
        fails += above > 1
        print(f"an idle call: {above:+.2f} µs above the bare one (at most 1)")
        rate = ir_rate(folder)
        fails += rate < LEAST_RATE
        print(f"code_mapping: {rate:.0f} MB/s of graph text (at least {LEAST_RATE:.0f})")
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main())
