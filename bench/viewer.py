"""The viewer: a graph of a million nodes in a file of 5 GB, asked as a browser asks, and looked at in one.

Prints a line per question: seconds and memory of ours, and whether the aim was reached. The browser is
measured where `npm ci` was run in `web/` and Chromium is there.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from bench.environment import environment, figure, read_options

TABLES = """
CREATE TABLE tb_nodes (
    id TEXT PRIMARY KEY, graph_id TEXT NOT NULL, node_order INTEGER NOT NULL, node_name TEXT NOT NULL,
    node_type TEXT NOT NULL, up_node TEXT, sub_nodes TEXT, precision_index INTEGER, overflow_level TEXT,
    micro_step_id INTEGER NOT NULL, matched_node_link TEXT, stack_id TEXT, parallel_merge_info TEXT,
    matched_distributed TEXT, modified INTEGER NOT NULL, input_data TEXT, output_data TEXT, data_source TEXT,
    dump_data_dir TEXT, step INTEGER NOT NULL, rank INTEGER NOT NULL, is_distributed INTEGER
);
CREATE TABLE tb_stack (id TEXT PRIMARY KEY, stack_info TEXT);
CREATE TABLE tb_config (
    id TEXT PRIMARY KEY, graph_type TEXT NOT NULL, task TEXT, tool_tip TEXT, micro_steps INTEGER,
    overflow_check INTEGER, node_colors TEXT NOT NULL, rank_list TEXT NOT NULL, step_list TEXT NOT NULL
);
"""
INDEXES = """
CREATE INDEX index1 ON tb_nodes (step, rank, data_source, up_node, node_order);
CREATE INDEX index2 ON tb_nodes (step, rank, data_source, node_name);
CREATE INDEX index3 ON tb_nodes (step, rank, data_source, node_order);
CREATE INDEX index4 ON tb_nodes (step, rank, node_order);
CREATE INDEX index5 ON tb_nodes (step, rank, micro_step_id, node_order);
CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link);
CREATE INDEX index7 ON tb_nodes (is_distributed);
"""
COLOURS = {
    "#FFFCF3": {"value": [0, 0.3], "description": "pass"},
    "#FFDC7F": {"value": [0.3, 0.6], "description": "warning"},
    "#FF704D": {"value": [0.6, 1], "description": "error"},
    "#C7C7C7": {"value": [], "description": "unmatched"},
}
CALLS = 20
# So long a value makes 5 GiB of a million nodes, each with inputs and outputs.
VALUE_BYTES = 2700
# Modules that are opened: with what is in them there are more than 2000 boxes on the screen.
OPENED = 130
WEB = Path(__file__).resolve().parent.parent / "web"


def write_side(database: sqlite3.Connection, source: str, nodes: int, value: dict[str, str]) -> None:
    """One side: modules with calls in them, children before their parents."""
    rows: list[tuple[Any, ...]] = []
    order = 0

    def add(name: str, kind: str, parent: str, children: list[str], index: float | None) -> None:
        nonlocal order
        data = json.dumps({f"{name}.output.0": value})
        link = json.dumps(["DefaultModel", name]) if order % 50 else "[]"
        rows.append(
            (
                f"{source}_0_0_{name}",
                f"{source}_0_0",
                order,
                name,
                kind,
                parent,
                json.dumps(children) if children else "",
                index,
                None,
                0,
                link,
                f"{source}_0_0_0",
                "",
                "{}",
                0,
                data,
                data,
                source,
                None,
                0,
                0,
                0,
            )
        )
        order += 1

    layers = max(1, nodes // 2 // (CALLS + 1))
    modules = []
    for layer in range(layers):
        module = f"Module.model.layers.{layer}.self_attention.Attention.forward.0"
        calls = [f"Functional.linear.{layer * CALLS + call}.forward" for call in range(CALLS)]
        for call, name in enumerate(calls):
            add(name, "1", module, [], 1 if layer == layers // 2 and call == 3 else 0)
        add(module, "0", "DefaultModel", calls, 0)
        modules.append(module)
        if len(rows) > 20_000:
            database.executemany(f"INSERT INTO tb_nodes VALUES ({','.join('?' * 22)})", rows)
            rows.clear()
    add("DefaultModel", "0", "", modules[:1], None)
    database.executemany(f"INSERT INTO tb_nodes VALUES ({','.join('?' * 22)})", rows)
    database.execute(
        "INSERT INTO tb_stack VALUES (?, ?)", (f"{source}_0_0_0", json.dumps(["File a.py, line 1"]))
    )


def write_store(path: Path, nodes: int, value_bytes: int) -> None:
    """Two sides of one rank with about so many nodes together: layers of modules with calls in them."""
    database = sqlite3.connect(path)
    database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + TABLES)
    database.execute(
        "INSERT INTO tb_config VALUES ('1', 'compare', 'summary', '{}', 1, 1, ?, '[0]', '[0]')",
        (json.dumps(COLOURS),),
    )
    value = {
        "type": "torch.Tensor",
        "dtype": "torch.bfloat16",
        "shape": "[4096, 1, 2048]",
        "Max": "1.5",
        "Min": "-1.5",
        "Mean": "0.1",
        "Norm": "99.0",
    }
    padding = "x" * max(0, value_bytes - len(json.dumps(value)))
    for source in ("NPU", "Bench"):
        write_side(database, source, nodes, {**value, "note": padding})
    database.executescript(INDEXES)
    database.commit()
    database.close()


class Server:
    """Our binary, serving a directory."""

    def __init__(self, binary: Path, place: Path) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [binary, "view", place, "--port", "0", "--no-open"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().strip()
        self.start_seconds = time.perf_counter() - began

    def get(self, path: str) -> tuple[float, Any]:
        """An answer, and how long it took; what is being prepared is waited for."""
        while True:
            began = time.perf_counter()
            try:
                with urllib.request.urlopen(self.url + path.lstrip("/"), timeout=120) as answer:
                    body = json.load(answer)
                return time.perf_counter() - began, body
            except urllib.error.HTTPError as error:
                if error.code != 503 or "preparing" not in json.load(error):
                    raise
                time.sleep(0.1)

    def peak_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=30)


def show(name: str, measured: str, reached: bool | None, aim: str) -> None:
    word = {True: "reached", False: "MISSED", None: ""}[reached]
    print(f"{name:<46} {measured:>12}   aim {aim:<10} {word}", flush=True)


def look(url: str, graph: str) -> None:
    """The same graph in a browser: its first paint, and moving it with 2000 boxes in view."""
    if not (WEB / "node_modules/playwright-core").is_dir():
        print("not measured: the browser needs `npm ci` in web/ and Chromium", flush=True)
        return
    nodes = [f"Module.model.layers.{at}.self_attention.Attention.forward.0" for at in range(OPENED)]
    ran = subprocess.run(
        ["node", "bench/viewer.mjs", url, graph, *nodes], cwd=WEB, capture_output=True, text=True, timeout=600
    )
    if ran.returncode:
        print(f"not measured: {ran.stderr.strip().splitlines()[-1:]}", flush=True)
        return
    found = json.loads(ran.stdout)
    paint, drawn = found["firstPaintMs"] / 1000, found["firstGraphMs"] / 1000
    show("first paint of the page", figure(paint), paint < 1, "1 s")
    show("both sides of the graph drawn", figure(drawn), drawn < 1, "1 s")
    show(f"{OPENED} modules opened by a link", figure(found["openMs"] / 1000), None, "-")
    many, readable = found["many"], found["readable"]
    for name, moved, aim in (("many", many, many["boxes"] >= 2000), ("readable", readable, True)):
        median = moved["medianMs"]
        show(
            f"frame while moving {moved['boxes']} boxes ({name}), median",
            f"{median:.1f} ms",
            aim and median < 33,
            "33 ms",
        )
        show("  of these 95 %, and the worst", f"{moved['p95Ms']:.0f}, {moved['worstMs']:.0f} ms", None, "-")


def main() -> None:
    options = read_options(__doc__, "100 000 nodes instead of a million", "binary")
    nodes = 100_000 if options.quick else 1_000_000
    place = Path(tempfile.mkdtemp(prefix="viewer-", dir=options.place))
    try:
        path = place / "compare_20260101000000.vis.db"
        write_store(path, nodes, VALUE_BYTES)
        size = path.stat().st_size / 2**30
        print(f"{nodes} nodes, {size:.1f} GiB")
        server = Server(options.binary, place)
        try:
            show(
                "start, until the address is printed",
                figure(server.start_seconds),
                server.start_seconds < 0.3,
                "0.3 s",
            )
            seconds, catalogue = server.get("/api/catalogue")
            show("list", figure(seconds), seconds < 0.3, "0.3 s")
            graph = f"/api/graph/{catalogue['items'][0]['id']}"
            first, _ = server.get(f"{graph}/children?step=0&rank=0&limit=200")
            show("first children of the root", figure(first), first < 0.5, "0.5 s")
            inside = "Module.model.layers.7.self_attention.Attention.forward.0"
            times = [server.get(f"{graph}/children?step=0&rank=0&node={inside}")[0] for _ in range(20)]
            show(
                "children of a module, median",
                figure(statistics.median(times)),
                statistics.median(times) < 0.02,
                "20 ms",
            )
            graph_id = catalogue["items"][0]["id"]
            look(server.url, graph_id)
            server.get(graph)
            seconds, _ = server.get(f"{graph}/search?q=warm")
            show("first search, while names are read", figure(seconds), None, "-")
            queries = [
                "layers.77",
                "linear.9999",
                "Attention",
                "nothing at all",
                "functional.linear.123456",
                "e",
            ]
            times = [server.get(f"{graph}/search?q={urllib.parse.quote(query)}")[0] for query in queries * 4]
            p95 = statistics.quantiles(times, n=20)[-1]
            show("search over all names, 95 %", figure(p95), p95 < 0.2, "200 ms")
            seconds, _ = server.get(f"{graph}/search?regex=1&q={urllib.parse.quote('layers[.](3|4)[.]')}")
            show("search by a regular expression", figure(seconds), seconds < 1, "1 s")
            seconds, _ = server.get(f"{graph}/search?q=layers.77&dtype=torch.bfloat16&side=target")
            show("search with facets", figure(seconds), seconds < 0.2, "200 ms")
            began = time.perf_counter()
            server.get(f"{graph}/findings?step=0&rank=0&kinds=error")
            show("first list of findings, with its pass", figure(time.perf_counter() - began), None, "-")
            seconds, found = server.get(f"{graph}/findings?step=0&rank=0&kinds=error")
            assert found["total"] == 1, found
            show("findings after that", figure(seconds), seconds < 0.2, "200 ms")
            seconds, _ = server.get(f"{graph}/pairs?step=0&rank=0&sort=index&descending=1")
            show("pairs, sorted", figure(seconds), seconds < 1, "1 s")
            peak = server.peak_mb()
            show("memory", f"{peak:.0f} MB", peak < 300, "300 MB")
        finally:
            code = server.end()
        show("exit code after SIGTERM", str(code), code == 0, "0")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
