#!/usr/bin/env bash
# Trains a small model twice with collection on, the second time with one layer broken on purpose, and asks msprobe
# which layer that was. Fails if the answer is another one.
set -eu
cd "$(dirname "$0")/.."
msprobe=${MSPROBE:-target/release/msprobe}
python=${PYTHON:-.venv/bin/python}
out=demo_out
broken_layer=Module.blocks.1.up.Linear.forward.0
rm -rf "$out"
mkdir -p "$out"
isa=$("$python" demo/usable_isa.py)
if [ -n "$isa" ]; then
    export ONEDNN_MAX_CPU_ISA=$isa
fi

say() {
    printf '\n%s\n' "$*"
}

show() {
    printf '\033[1m$ %s\033[0m\n' "$*"
}

# Exit code 1 says that differences were found, which is what both commands are to find here.
differs() {
    show msprobe "$@"
    status=0
    "$msprobe" "$@" || status=$?
    if [ "$status" -ne 1 ]; then
        printf 'exit code %s instead of 1\n' "$status" >&2
        exit 1
    fi
}

say '1. Train twice. In the second run a layer of the second block computes in bfloat16; the losses do not tell.'
for kind in good broken; do
    show python demo/train.py "$out/$kind" "$kind"
    MSPROBE_LOG_LEVEL=2 "$python" demo/train.py "$out/$kind" "$kind"
done

say '2. What PrecisionDebugger left of the first step: what went in and out of every layer.'
step=step0/rank
show ls "$out/good/$step"
ls "$out/good/$step"
printf '%s tensor files in dump_tensor_data\n' "$(find "$out/good/$step" -name '*.pt' | wc -l)"

say '3. Compare the two dumps: tables, and which layer made the difference.'
differs compare "$out/broken" "$out/good" -o "$out/compare" --format xlsx,html

say '4. The same verdict for scripts, in verdict.json.'
"$python" demo/check.py "$out/compare" "$broken_layer"

say '5. A closer look at the output of that layer.'
tensor=$step/dump_tensor_data/$broken_layer.output.0.pt
differs diff "$out/broken/$tensor" "$out/good/$tensor"

say "The broken layer was found. Everything is in $out/. To look at it in a browser:"
show "$msprobe" view "$out"
