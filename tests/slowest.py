"""Prints the twenty slowest tests of the JUnit reports given, Rust and Python together.

A report that is not there is left out: without cargo-nextest there is none of the Rust tests.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

COUNT = 20


def main() -> None:
    cases = [
        (float(case.get("time", 0)), f"{case.get('classname')} {case.get('name')}")
        for report in map(Path, sys.argv[1:])
        if report.exists()
        for case in ElementTree.parse(report).iter("testcase")
    ]
    print(f"the {min(COUNT, len(cases))} slowest of {len(cases)} tests:")
    for seconds, name in sorted(cases, reverse=True)[:COUNT]:
        print(f"{seconds:7.1f} s  {name}")


if __name__ == "__main__":
    main()
