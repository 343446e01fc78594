#!/usr/bin/env bash
# Installs the pinned headless Chromium and axe into the folder $1, with npm.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/chromium"
cp "$here/package.json" "$here/package-lock.json" "$here/unpack.mjs" "$here/fonts.conf" "$1"
cd "$1"
npm ci --ignore-scripts --no-audit --no-fund >&2
TMPDIR="$1/chromium" node unpack.mjs
touch installed
