#!/usr/bin/env bash
# Installs the package as a user would, into a clean venv without any framework, and uses it.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check .

cd "$work"
venv/bin/python - <<'PY'
import importlib.util
import pathlib
import sys

import msprobe
import msprobe.core.tensor
import msprobe.rl
from msprobe.core import collect_config

for framework in ("torch", "mindspore", "numpy"):
    assert importlib.util.find_spec(framework) is None, f"{framework} came along with the package"
    assert framework not in sys.modules
assert collect_config.resolve().task == "statistics", "the packaged config.json is not what it should be"
pathlib.Path("train.yaml").write_text("msprobe_config: {msprobe: false, key-data-dump: true}")
probe = msprobe.rl.RLProbe("train.yaml")
assert probe.settings.key_data_dump and not probe.enabled, "the YAML block of RL frameworks is not read"
print(f"import msprobe {msprobe.__version__}: fine without a framework")
PY
fixtures=$OLDPWD/tests/fixtures
venv/bin/msprobe --version
venv/bin/msprobe inspect "$fixtures/pt/bare_parameter.pt" >/dev/null
status=0
venv/bin/msprobe diff "$fixtures/npy/manifest.json" "$fixtures/npy/manifest.json" 2>/dev/null || status=$?
[ "$status" -eq 2 ] || { echo "expected exit code 2, got $status" >&2; exit 1; }
echo "1 passed, 0 failed"
