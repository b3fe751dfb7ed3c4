#!/usr/bin/env bash
# Writes requirements/*.txt from requirements/*.in: every package pinned, with the hashes of all its files, for all Python
# versions from 3.11 up (what PyTorch asks for) and both architectures. Needs uv. Versions that are there already are kept
# where they fit.
# `requirements/lock.sh --upgrade` takes the newest.
# `requirements/lock.sh --check` changes nothing, and fails if a file is not what it would write.
set -eu
cd "$(dirname "$0")"

# lock NAME [OPTION…]
lock() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
        --no-annotate "${@:2}" "${upgrade[@]}" "$1.in" -o "$1.txt"
}

upgrade=("$@")
if [ "${1:-}" = --check ]; then
    upgrade=()
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    cp ./*.in ./*.txt "$copy"
    cd "$copy"
fi
lock test
# What goes into the same environment has to agree.
lock torch --constraints test.txt
lock rl --constraints test.txt --constraints torch.txt
lock release --constraints test.txt
lock reference
lock mindspore

if [ "${1:-}" = --check ]; then
    for file in "$copy"/*.txt; do
        diff "$OLDPWD/${file##*/}" "$file"
    done
    echo "requirements: all packages are pinned with hashes"
fi
