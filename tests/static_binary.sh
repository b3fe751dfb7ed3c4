#!/usr/bin/env bash
# Builds the binary for any Linux of this processor, into the directory given: no shared library, not even the C library.
set -eu
cd "$(dirname "$0")/.."
out=${1:?the directory to put it into}
host=$(rustc -vV | sed -n 's/^host: //p')
case $host in
*-linux-gnu) ;;
*) echo "error: only Linux with glibc can be built for, not $host" >&2; exit 2 ;;
esac

# A target has to be named: without one the flag would be used for build scripts and procedural macros too.
RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --quiet --bin msprobe \
    --target "$host" --target-dir target/static
version=$(cargo pkgid --locked -p msprobe-cli | sed 's/.*[#@]//')
binary=$out/msprobe-$version-${host%%-*}-linux
mkdir -p "$out"
cp "target/static/$host/release/msprobe" "$binary"

if readelf --dynamic "$binary" | grep NEEDED; then
    echo "error: $binary needs shared libraries" >&2
    exit 1
fi
# It runs where nothing of this system is there.
env -i "$binary" --version
env -i "$binary" inspect tests/fixtures/pt/training.pt >/dev/null
echo "$binary: $(stat -c %s "$binary") bytes, no shared libraries"
