"""Graphs: two ranks by the reference and by us, many ranks into one .vis.db, and how both grow.

Prints a line per job: seconds and memory of ours, of the other side, and whether the aim was reached.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.environment import ROOT, environment, read_options

WORKER = ROOT / "tests/python/graph/reference_worker.py"
MEGA = 1 << 20


class Used(NamedTuple):
    seconds: float
    peak_mb: float


def write_rank(directory: Path, nodes: int, change: float) -> None:
    """A dump of about so many calls: layers of modules with functions in them, forward and backward."""
    directory.mkdir(parents=True)
    chance = random.Random(0)

    def tensor() -> str:
        value = chance.uniform(-3, 3)
        if change and chance.random() < change:
            value *= 1.5
        return (
            '{"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4096, 1, 2048], '
            f'"Max": {value}, "Min": {-value}, "Mean": {value / 7}, "Norm": {abs(value) * 99}, '
            '"requires_grad": true}'
        )

    construct: dict[str, str | None] = {}
    stack: dict[str, Any] = {}
    groups: dict[str, list[str]] = {}
    with (directory / "dump.json").open("w") as dump:
        dump.write(
            '{"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {'
        )
        first = True
        for layer in range(nodes // 20):
            for direction in ("forward", "backward"):
                parent = f"Module.layers.{layer}.Layer.{direction}.0"
                names = [
                    (f"Torch.f{call % 5}.{layer * 2 + call // 5}.{direction}", parent) for call in range(9)
                ]
                for name, above in [*names, (parent, None)]:
                    construct[name] = above
                    groups.setdefault(name.split(".")[1], []).append(name)
                    inputs = f'"input_args": [{tensor()}, {tensor()}], "input_kwargs": {{}}'
                    body = f'{{{inputs}, "output": [{tensor()}]}}'
                    dump.write(("" if first else ", ") + f'"{name}": {body}')
                    first = False
        dump.write("}}")
    for number, (name, members) in enumerate(groups.items()):
        frames = [f"File model.py, line {line}, in forward, \n self.{name}(x)" for line in range(12)]
        stack[str(number)] = [members, frames]
    (directory / "construct.json").write_text(json.dumps(construct))
    (directory / "stack.json").write_text(json.dumps(stack))


def run(command: list[str], given: str = "", python: Path | None = None) -> tuple[Used, str]:
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as into:
        into.write(given)
        into.seek(0)
        process = subprocess.Popen(
            command, stdin=into, stdout=out, stderr=subprocess.DEVNULL, env=environment(python), cwd=ROOT
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            raise RuntimeError(f"{command} ended with {process.returncode}")
        out.seek(0)
        return Used(seconds, usage.ru_maxrss * 1024 / MEGA), out.read()


def insert_only(database: Path, place: Path) -> float:
    """Seconds for the same rows, and the same indexes, with nothing else."""
    source = sqlite3.connect(database)
    schema = [row[0] for row in source.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
    tables = [sql for sql in schema if sql.startswith("CREATE TABLE")]
    indexes = [sql for sql in schema if sql.startswith("CREATE INDEX")]
    copy = place / "copy.db"
    copy.unlink(missing_ok=True)
    target = sqlite3.connect(copy, isolation_level=None)
    target.execute("PRAGMA journal_mode = OFF")
    target.execute("PRAGMA synchronous = OFF")
    for sql in tables:
        target.execute(sql)
    seconds = 0.0
    for name in ("tb_nodes", "tb_stack", "tb_config", "msprobe_verdicts", "msprobe_answers"):
        cursor = source.execute(f"SELECT * FROM {name}")
        marks = ", ".join("?" * len(cursor.description))
        while rows := cursor.fetchmany(20_000):
            start = time.perf_counter()
            target.execute("BEGIN")
            target.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
            target.execute("COMMIT")
            seconds += time.perf_counter() - start
    start = time.perf_counter()
    for sql in indexes:
        target.execute(sql)
    return seconds + time.perf_counter() - start


def main() -> int:
    options = read_options(__doc__, "a tenth of the nodes, 8 ranks", "reference", "binary")
    share = 10 if options.quick else 1
    reached: list[bool] = []

    def aim(text: str, is_reached: bool) -> str:
        reached.append(is_reached)
        return f"{text}: {'reached' if is_reached else 'MISSED'}"

    place = Path(tempfile.mkdtemp(prefix="graph-", dir=options.place))
    try:
        nodes = 100_000 // share
        for side, change in (("npu", 0.01), ("bench", 0.0)):
            write_rank(place / "two" / side, nodes, change)
        config = place / "compare.json"
        paths = {"npu_path": f"{place}/two/npu", "bench_path": f"{place}/two/bench"}
        config.write_text(json.dumps({**paths, "is_print_compare_log": False}))
        command = [str(options.binary), "-f", "pytorch", "graph", "-i", str(config), "-o", f"{place}/ours"]
        ours = min(run(command)[0] for _ in range(3))
        job = [{"input": str(config), "output": f"{place}/theirs", "flags": []}]
        theirs, said = run([str(options.reference), str(WORKER)], json.dumps(job), options.reference)
        seconds = json.loads(said.splitlines()[-1])["seconds"]
        print(
            f"build and compare, 2 x {nodes} nodes: ours {ours.seconds:.2f} s {ours.peak_mb:.0f} MB, "
            f"reference {seconds:.1f} s {theirs.peak_mb:.0f} MB; "
            + aim(f"{seconds / ours.seconds:.0f}x, aim 30x", seconds / ours.seconds >= 30)
            + "; "
            + aim("under 500 MB", ours.peak_mb < 500)
        )
        many = 64 if share == 1 else 8
        memory = {}
        for count in (1, many):
            shutil.rmtree(place / "many", ignore_errors=True)
            write_rank(place / "many/rank0", 20_000 // share, 0.0)
            for rank in range(1, count):
                shutil.copytree(place / "many/rank0", place / f"many/rank{rank}", copy_function=os.link)
            shutil.rmtree(place / "db", ignore_errors=True)
            command = [str(options.binary), "graph_visualize", "-tp", f"{place}/many", "-o", f"{place}/db"]
            memory[count] = run(command)[0]
        bare = insert_only(next((place / "db").glob("*.vis.db")), place)
        ratio = memory[many].seconds / bare
        print(
            f"{many} ranks x {20_000 // share} nodes into one .vis.db: ours {memory[many].seconds:.1f} s "
            f"{memory[many].peak_mb:.0f} MB, the same rows alone {bare:.1f} s; "
            + aim(f"{ratio:.2f}x, aim 1.5x", ratio <= 1.5)
            + "; "
            + aim(f"1 rank {memory[1].peak_mb:.0f} MB", memory[many].peak_mb < memory[1].peak_mb * 1.5 + 32)
        )
        grown = {}
        for nodes in (10_000, 100_000) if share > 1 else (10_000, 100_000, 1_000_000):
            shutil.rmtree(place / "one", ignore_errors=True)
            write_rank(place / "one", nodes, 0.0)
            command = [str(options.binary), "graph_visualize", "-tp", f"{place}/one", "-o", f"{place}/one_db"]
            grown[nodes] = run(command)[0]
            shutil.rmtree(place / "one_db")
        sizes = list(grown)
        each = [grown[size].seconds / size * 1e6 for size in sizes]
        print(
            "build, "
            + ", ".join(f"{size} nodes {grown[size].seconds:.2f} s" for size in sizes)
            + "; "
            + aim("linear in nodes", each[-1] < each[-2] * 2)
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
