#!/usr/bin/env bash
# Tests the CUDA path on the emulated device, and ends with a line of counts.
# Arguments go to go test. Its cache knows nothing of the emulated device: -count=1.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v g++ >/dev/null || ! make --silent -C kernels/cuda toolchain; then
	echo "SKIPPED: the CUDA path is not tested: it needs g++, and Python to install kernels/cuda/toolchain.txt" >&2
	[ "${SLUICE_REQUIRE_ALL:-}" != 1 ]
	exit
fi
make --silent -C kernels/cuda
. kernels/cuda/environment.sh
export CUDA_DRIVER_LIBRARY=$PWD/bin/cuda/libcuda.so.1
export CUDA_EMULATOR_SEED=${CUDA_EMULATOR_SEED:-$RANDOM}
go vet -tags nvidia ./kernels/cuda/... ./gpu/cuda/... ./cmd/sluice-gpu
go build -tags nvidia -o bin/sluice-gpu ./cmd/sluice-gpu
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
go test -tags nvidia -count=1 -v "$@" ./kernels/cuda/... ./gpu/cuda/... >"$log" 2>&1 || status=$?
if [ $status != 0 ]; then
	grep -vE '^ *(=== |--- (PASS|SKIP))' "$log" >&2
	echo "CUDA_EMULATOR_SEED=$CUDA_EMULATOR_SEED gives the same again" >&2
fi
awk '/^ *--- PASS/ { p++ } /^ *--- FAIL/ { f++ } /^ *--- SKIP/ { s++ }
	END { printf "cuda-test: %d passed, %d failed, %d skipped\n", p, f, s }' "$log"
exit $status
