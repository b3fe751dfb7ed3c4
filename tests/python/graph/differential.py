"""Random hierarchies through the reference 8.1.2 and through ours: equal but for listed differences.

    python -m tests.python.graph.differential REFERENCE_PYTHON MSPROBE [COUNT] [SEED]

REFERENCE_PYTHON is the interpreter of an environment with mindstudio-probe 8.1.2, MSPROBE our binary.
Differences that are meant are in ``docs/differences.md``: collections of real data, names that hold
``.output.`` or ``.input.`` themselves, values a fuzzy match leaves without a partner, and calls below
nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.python.graph.random_hierarchies import write_pair

FLAGS = [[], ["-f"], ["-oc"], ["-cs"], ["-lm"]]


def first_difference(ours: Any, theirs: Any, at: str = "") -> str | None:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            only_ours = [key for key in ours if key not in theirs][:3]
            only_theirs = [key for key in theirs if key not in ours][:3]
            return f"{at}: keys {only_ours} / {only_theirs}, or their order"
        for key in theirs:
            if difference := first_difference(ours[key], theirs[key], f"{at}/{key}"):
                return difference
        return None
    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return f"{at}: {ours} / {theirs}"
        for index, (one, two) in enumerate(zip(ours, theirs)):
            if difference := first_difference(one, two, f"{at}/{index}"):
                return difference
        return None
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)) and not isinstance(ours, bool):
        return None if abs(ours - theirs) <= 1e-12 else f"{at}: {ours} / {theirs}"
    return None if ours == theirs else f"{at}: {ours!r} / {theirs!r}"


def without_surplus(document: Any) -> Any:
    """Without what the reference shows of a value that has no partner: statistics in the error columns."""
    for node in document.get("NPU", {}).get("node", {}).values():
        for values in (node["input_data"], node["output_data"]):
            for value in values.values():
                if value.get("Max diff") == " ":
                    for key in ("MeanRelativeErr", "NormRelativeErr"):
                        value.pop(key, None)
    return document


def read_result(out: Path) -> Any:
    files = sorted(out.glob("*.vis"))
    return without_surplus(json.loads(files[0].read_text())) if files else None


def main() -> int:
    reference, msprobe = sys.argv[1], sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    with tempfile.TemporaryDirectory() as name:
        jobs: list[dict[str, Any]] = []
        for seed in range(first, first + count):
            root = Path(name) / str(seed)
            target, golden, mode = write_pair(root, seed)
            flags = FLAGS[(seed // 4) % len(FLAGS)]
            config: dict[str, Any] = {"npu_path": str(target), "is_print_compare_log": False}
            if seed % 5:
                config["bench_path"] = str(golden)
            (root / "compare.json").write_text(json.dumps(config))
            jobs.append({"seed": seed, "mode": mode, "flags": flags, "root": str(root)})
        their_jobs = [
            {"input": f"{job['root']}/compare.json", "output": f"{job['root']}/theirs", "flags": job["flags"]}
            for job in jobs
        ]
        worker = Path(__file__).parent / "reference_worker.py"
        theirs_said = subprocess.run(
            [reference, str(worker)], input=json.dumps(their_jobs), capture_output=True, text=True, check=True
        ).stdout
        failures = 0
        for job, said in zip(jobs, theirs_said.splitlines()):
            root = Path(job["root"])
            command = [msprobe, "-f", "pytorch", "graph", "-i", f"{root}/compare.json", "-o", f"{root}/ours"]
            ours_run = subprocess.run([*command, *job["flags"]], capture_output=True, text=True, check=False)
            ours, theirs = read_result(root / "ours"), read_result(root / "theirs")
            difference = first_difference(ours, theirs)
            if ours is None or theirs is None:
                difference = f"ours {ours_run.stderr[-300:]!r}, theirs {said}"
            if difference:
                failures += 1
                print(f"{job['seed']} {job['mode']} {' '.join(job['flags'])}: {difference}", flush=True)
        print(f"{failures} of {len(jobs)} differ")
        return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
