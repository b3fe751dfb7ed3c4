#!/usr/bin/env bash
# Fuzzes each parser for the given number of seconds, starting from recorded files.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-120}

# seed TARGET NAME…: recorded files of these names, as beginnings of a corpus.
seed() {
    local target=$1 name
    shift
    for name in "$@"; do
        find tests/golden -name "$name" -size -16k | while read -r file; do
            cp "$file" "fuzz/corpus/$target/$(echo "$file" | sha1sum | cut -c1-16)"
        done
    done
}

# run TARGET DIRECTORY…: the corpus, and seeds that lie together.
run() {
    local target=$1
    shift
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "$@" -- \
        -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=256 -print_final_stats=1
}

for target in npy safetensors pt json config mapping sketch; do
    mkdir -p "fuzz/corpus/$target"
done
seed json dump.json stack.json construct.json
seed config 'config*.json'
seed mapping '*.yaml'

# Texts that tests have written down, each by itself and twice.
grep -oE '"1[a-z][A-Za-z0-9+/]{11,}"' crates/tensor/src/stats/sketch/tests.rs | tr -d '"' | while read -r text; do
    name=$(echo "$text" | sha1sum | cut -c1-16)
    printf '%s' "$text" > "fuzz/corpus/sketch/$name"
    printf '%s\0%s' "$text" "$text" > "fuzz/corpus/sketch/$name-twice"
done

for target in npy safetensors pt; do
    run "$target" "tests/fixtures/$target" "crates/tensor/tests/hostile/$target"
done
for target in json config mapping sketch; do
    run "$target"
done
