#!/usr/bin/env bash
# Installs a wheel as a user would, into a clean venv without any framework, and uses it: with every Python from 3.9 up
# that is found on this machine.
set -eu
wheel=$(realpath "${1:?the wheel to install}")
cd "$(dirname "$0")/.."
fixtures=$PWD/tests/fixtures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints one interpreter of each version from 3.9 up: those on the path, and those of pyenv.
interpreters() {
    local found python version
    declare -A found
    for python in $(compgen -c python3 | grep -xE 'python3(\.[0-9]+)?' | sort -u) \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
        version=$("$python" -c 'import sys, venv, ensurepip; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
        [[ $version =~ ^3\.(9|[1-9][0-9])$ ]] || continue
        [ -n "${found[$version]:-}" ] || found[$version]=$python
    done
    for version in "${!found[@]}"; do
        echo "$version ${found[$version]}"
    done | sort -V
}

# install VERSION PYTHON
install() {
    local venv=$work/$1/venv status=0
    "$2" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
    cd "$work/$1"
    "$venv/bin/python" - <<'PY'
import importlib.util
import pathlib
import sys

import msprobe
import msprobe.core.tensor
import msprobe.rl
from msprobe.core import collect_config
from msprobe.core.framework import Framework

assert "site-packages" in msprobe.__file__, f"{msprobe.__file__} is not what was installed"
for framework in ("torch", "mindspore", "numpy"):
    assert importlib.util.find_spec(framework) is None, f"{framework} came along with the package"
    assert framework not in sys.modules
unknown = Framework(name="none", tensor_type="none.Tensor", size_type="none.Size", tensor_format="npy")
assert collect_config.resolve(unknown).task == "statistics", "the packaged config.json is not what it should be"
pathlib.Path("train.yaml").write_text("msprobe_config: {msprobe: false, key-data-dump: true}")
probe = msprobe.rl.RLProbe("train.yaml")
assert probe.settings.key_data_dump and not probe.enabled, "the YAML block of RL frameworks is not read"
PY
    [ "$("$venv/bin/msprobe" --version)" = "$("$venv/bin/python" -m msprobe --version)" ]
    "$venv/bin/msprobe" inspect "$fixtures/pt/bare_parameter.pt" >/dev/null
    "$venv/bin/msprobe" diff "$fixtures/npy/manifest.json" "$fixtures/npy/manifest.json" 2>/dev/null || status=$?
    [ "$status" -eq 2 ] || { echo "error: expected exit code 2, got $status" >&2; exit 1; }
    echo "Python $1 ($2): installed, imported without a framework, ran"
}

passed=0
while read -r version python; do
    # In a process of its own, so that its first failure ends it and with it everything.
    (install "$version" "$python")
    passed=$((passed + 1))
done < <(interpreters)
[ "$passed" -gt 0 ] || { echo "error: no Python from 3.9 up was found" >&2; exit 1; }
echo "$passed passed, 0 failed: ${wheel##*/}"
