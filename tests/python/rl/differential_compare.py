"""Random runs compared by the reference and by us; every cell of every table must agree.

    python tests/python/rl/differential_compare.py REFERENCE_PYTHON [TREES] [SEED]

REFERENCE_PYTHON is the interpreter of an environment with mindstudio-probe 8.1.2 and numpy 1. Arrays of a
pair have the same number of dimensions: where they have not, the reference's figures are wrong.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from msprobe.core.single_save.single_comparator import SingleComparator
from tests.python.rl.key_tables import TOLERANCE, as_text, differences, read_workbook

KEYS_PER_TREE = 40
DTYPES = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", ">f4", ">i8"]
NAMES = ["{key}.npy", "{key}.{id}.npy", "{id}.npy", "x.{id}.npy", "{key}.json", "notes.txt", "a.b.{id}.npy"]
REFERENCE = (
    "import sys; from msprobe.core import SingleComparator as C; C.compare(*sys.argv[1:4], num_processes=2)"
)


def random_array(chance: random.Random, dtype: str, shape: tuple[int, ...]) -> Any:
    kind = np.dtype(dtype).kind
    size = int(np.prod(shape))
    if kind in "ui":
        info = np.iinfo(dtype)
        small = [chance.randint(max(info.min, -100), min(info.max, 100)) for _ in range(size)]
        wild = chance.random() < 0.2
        # The lowest number has no magnitude in its own type, and which type that is differs in mixed pairs.
        values = [chance.randint(info.min // 2, info.max) if wild else value for value in small]
        return np.array(values, dtype=dtype).reshape(shape)
    if kind == "b":
        return np.array([chance.random() < 0.5 for _ in range(size)], dtype=dtype).reshape(shape)
    scale = chance.choice([1.0, 1e-3, 1e4, 1e-40])
    floats: Any = np.array([chance.gauss(0.0, scale) for _ in range(size)]).reshape(shape)
    if chance.random() < 0.25:
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 6e4, 3e38, 1e308]
        for index in np.ndindex(*shape):
            if chance.random() < 0.2:
                floats[index] = chance.choice(special)
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "c":
            return (floats + 1j * np.roll(floats, 1)).astype(dtype)
        return floats.astype(dtype)


def partner(chance: random.Random, array: Any) -> Any:
    """Equal, nearly equal, or something else of as many dimensions."""
    choice = chance.random()
    if choice < 0.3:
        return array.copy()
    if choice < 0.6 and array.dtype.kind in "fc":
        with np.errstate(over="ignore", invalid="ignore"):
            return (array * (1 + chance.choice([1e-3, 1e-2, 1e-4, 2e-3]))).astype(array.dtype)
    shape = array.shape
    if choice > 0.8:
        shape = tuple(max(0, size + chance.randint(-1, 2)) for size in shape)
    dtype = array.dtype.str if chance.random() < 0.6 else chance.choice(DTYPES)
    return random_array(chance, dtype, shape)


def make_tree(chance: random.Random, root: Path) -> dict[str, set[str]]:
    """Both runs of a case, and the dtypes each key has."""
    dtypes: dict[str, set[str]] = {}
    for number in range(KEYS_PER_TREE):
        key = f"{chance.choice(['log_prob', 'a.5', 'k-1', 'loss'])}{number}"
        dtype = chance.choice(DTYPES)
        steps = chance.sample([0, 1, 2, 10, 11], chance.randint(1, 3))
        for step in steps:
            folder = f"step{step:0{chance.randint(1, 2)}}/rank{chance.randint(0, 12)}"
            if chance.random() < 0.8:
                folder += f"/micro_step{chance.randint(0, 12)}"
            name = chance.choice(NAMES)
            for index in range(chance.randint(1, 3) if "{id}" in name else 1):
                shape = tuple(
                    chance.randint(0 if chance.random() < 0.05 else 1, 5) for _ in range(chance.randint(0, 3))
                )
                array = random_array(chance, dtype, shape)
                if chance.random() < 0.2:
                    array = np.asfortranarray(array)
                for side, values in (("a", array), ("b", partner(chance, array))):
                    if chance.random() < 0.1:
                        continue
                    dtypes.setdefault(key, set()).add(values.dtype.str)
                    path = root / side / "data" / key / folder / name.format(key=key, id=index * 9)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    if path.suffix == ".npy" and chance.random() > 0.02:
                        np.save(path, values)
                    else:
                        path.write_bytes(b"no array")
    return dtypes


def tolerance_for(dtypes: set[str]) -> float:
    """How far a recorded number may be off.

    numpy's modulus of complex64 is off by a bit or two of a float32, and which depends on the processor. A
    column in which pandas finds integers and float32 is rounded to float32.
    """
    kinds = {np.dtype(dtype).kind for dtype in dtypes}
    return 4e-7 if "<c8" in dtypes or (len(kinds) > 1 and kinds & set("ui")) else TOLERANCE


def main() -> None:
    reference = sys.argv[1]
    trees = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    tables = rows = wrong = 0
    for tree in range(trees):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            dtypes = make_tree(random.Random(seed + tree), root)
            # Without the environment, which may name our package.
            command = [reference, "-E", "-W", "ignore", "-c", REFERENCE, "a", "b", "theirs"]
            subprocess.run(command, cwd=root, check=True, capture_output=True)
            SingleComparator.compare(root / "a", root / "b", root / "ours")
            for theirs in sorted((root / "theirs").glob("*.xlsx")):
                expected = [[as_text(cell) for cell in row] for row in read_workbook(theirs)[1]]
                tolerance = tolerance_for(dtypes.get(theirs.stem, set()))
                found = differences(read_workbook(root / "ours" / theirs.name)[1], expected, tolerance)
                tables, rows, wrong = tables + 1, rows + len(expected) - 1, wrong + len(found)
                for text in found:
                    print(f"seed {seed + tree}, {theirs.stem}: {text}")
    print(f"{tables} tables with {rows} rows, {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
