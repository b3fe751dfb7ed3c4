#!/usr/bin/env bash
# Fuzzes each parser for the given number of seconds, starting from the recorded files.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-120}
for target in npy safetensors pt; do
    mkdir -p "fuzz/corpus/$target"
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "tests/fixtures/$target" \
        "crates/tensor/tests/hostile/$target" -- \
        -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=256 -print_final_stats=1
done
