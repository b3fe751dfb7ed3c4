"""The functions that are wrapped: a file beside the hooks of a framework, which users may edit.

The file is a small part of YAML: sections with a list of names, and comments.
"""

from __future__ import annotations

from pathlib import Path


def read_api_list(path: Path) -> dict[str, list[str]]:
    """Names by section, each once, in the order of the file."""
    sections: dict[str, list[str]] = {}
    names: list[str] | None = None
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        if line.endswith(":"):
            names = sections.setdefault(line[:-1].strip(), [])
        elif line.startswith("- ") and names is not None:
            name = line[2:].strip().strip("'\"")
            if name not in names:
                names.append(name)
        else:
            raise ValueError(f"{path}, line {number}: expected 'section:' or '- name', found {line!r}")
    return sections
