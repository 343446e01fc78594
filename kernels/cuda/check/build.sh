#!/usr/bin/env bash
# Makes a folder that tests and measures the CUDA path on a machine with a GPU
# and nothing else: no Go, no CUDA, no network. make cuda-check calls it.
set -euo pipefail
to=$(realpath -m "$1")
cd "$(dirname "$0")/../../.."
. kernels/cuda/environment.sh
rm -rf "$to"
mkdir -p "$to/gpu/cuda/kernel" "$to/gpu/cuda/worker" "$to/model"
for package in kernel worker; do
	go test -c -tags nvidia -ldflags "-s -w" -o "$to/gpu/cuda/$package/check" "./gpu/cuda/$package"
done
cp bin/sluice-gpu kernels/cuda/check/check.sh "$to"
cp -r model/testdata "$to/model/"
du -sm "$to" | awk '{ print $2 ": " $1 " MB"; exit $1 > 60 }'
