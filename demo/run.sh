#!/usr/bin/env bash
# Trains a small model twice, the second time with one layer broken on purpose, and asks msprobe about both.
set -eu
cd "$(dirname "$0")/.."
msprobe=target/release/msprobe
out=demo_out
mkdir -p "$out"

run() {
    printf '\n\033[1m$ %s\033[0m\n' "msprobe $*"
    "$msprobe" "$@" || status=$?
}

printf 'training a small model twice with PyTorch, the second time with layer blocks.1 broken ...\n'
.venv/bin/python demo/train.py "$out"

status=0
run inspect "$out/good.pt" --tensor blocks.1.up.weight --tensor blocks.1.up.bias
run diff "$out/broken.safetensors" "$out/good.pt" --top 5
printf '\nexit code %s: the files differ. Both are in %s/\n' "$status" "$out"
[ "$status" -eq 1 ]
