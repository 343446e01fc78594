#!/usr/bin/env bash
# Builds the release of the last commit twice, in two places and from empty caches, and compares every byte; then
# starts what is in the archive for this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
for place in first second/deeper; do
    mkdir -p "$work/$place"
    git clone --quiet --no-hardlinks . "$work/$place/source"
    GOCACHE=$work/$place/cache "$work/$place/source/release/build.sh" "$work/$place/dist" >/dev/null
done
diff -r "$work/first/dist" "$work/second/deeper/dist"
cd "$work/first/dist" && sha256sum --quiet --check SHA256SUMS
tar -xzf ./*-linux-"$(${GO:-go} env GOARCH)".tar.gz
./sluice-*/sluice --version
echo "two builds are the same, byte for byte"
