"""Whether the demo found what it was to find: ``check.py COMPARE_OUTPUT RECORD``.

Reads verdict.json as a script of a user would, and fails if it names another record or a report is missing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> int:
    output, expected = Path(sys.argv[1]), sys.argv[2]
    verdict = json.loads((output / "verdict.json").read_text())
    for key in ("status", "culprit", "direction", "step"):
        print(f"{key + ':':<10} {verdict[key]}")
    reports = sorted([*output.glob("*.xlsx"), *output.glob("*.html")])
    for report in reports:
        print(f"{'report:':<10} {report}")
    if verdict["culprit"] != expected or verdict["status"] != "diverged":
        print(f"the layer that was broken is {expected}", file=sys.stderr)
        return 1
    if {report.suffix for report in reports} != {".xlsx", ".html"}:
        print("a report is missing", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
