#!/usr/bin/env bash
# Trains a small model twice with collection on, the second time with one layer broken on purpose, and asks msprobe
# where the two runs part.
set -eu
cd "$(dirname "$0")/.."
msprobe=${MSPROBE:-target/release/msprobe}
python=${PYTHON:-.venv/bin/python}
out=demo_out
rm -rf "$out"
mkdir -p "$out"

show() {
    printf '\n\033[1m$ %s\033[0m\n' "$*"
}

run() {
    show msprobe "$@"
    status=0
    "$msprobe" "$@" || status=$?
}

for kind in good broken; do
    show python demo/train.py "$out/$kind" "$kind"
    MSPROBE_LOG_LEVEL=2 "$python" demo/train.py "$out/$kind" "$kind"
    printf 'trained 5 steps, collected 2\n'
done

step=step0/rank
show find "$out/good" -name '*.json'
find "$out/good" -name '*.json' | sort
printf 'and %s tensor files in each step\n' "$(find "$out/good/$step" -name '*.pt' | wc -l)"

record=Module.1.up.Linear.forward.0
show "the output of $record in $out/good/$step/dump.json"
"$python" - "$out/good/$step/dump.json" "$record" <<'PYTHON'
import json
import sys

path, record = sys.argv[1:]
with open(path) as file:
    print(json.dumps(json.load(file)["data"][record]["output"][0], indent=1))
PYTHON

tensors() {
    printf '%s/%s/dump_tensor_data/%s.pt' "$out" "$1" "$2"
}

run inspect "$(tensors good/$step $record.output.0)"

printf '\nThe output of the first block, then of a layer in the second and what its next layer was given:\n'
for tensor in Module.0.Block.forward.0.output.0 $record.output.0 Module.1.down.Linear.forward.0.input.0; do
    run diff "$(tensors broken/$step "$tensor")" "$(tensors good/$step "$tensor")"
done
printf '\nexit code %s: the runs part between up and down of block 1. Both dumps are in %s/\n' "$status" "$out"
[ "$status" -eq 1 ]
