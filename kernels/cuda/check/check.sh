#!/usr/bin/env bash
# Tests every kernel and the families of models on this machine's first GPU,
# then measures it: check.sh [--correctness] [FILE.json]
# Exit status: 0 all is right, 1 something is wrong, 2 there is no GPU.
set -uo pipefail
cd "$(dirname "$0")"
file=figures.json measure=1
for argument in "$@"; do
	case $argument in
	--correctness) measure= ;;
	*) file=$argument ;;
	esac
done
if ! devices=$(./sluice-gpu list 2>&1); then
	echo "nothing is checked: $devices" >&2
	exit 2
fi
echo "$devices"
# Tests of what only the emulated device has are left out.
emulated='^(TestLoad|TestOtherDevices|TestMiniLM|TestOutOfMemory)$'
status=0
for package in kernel worker; do
	(cd gpu/cuda/$package && ./check -test.v -test.run "${CHECK_RUN:-.}" -test.skip "$emulated") >$package.log 2>&1
	failed=$?
	grep -E '^--- (PASS|FAIL|SKIP)' $package.log
	if [ $failed != 0 ]; then
		status=1
		grep -vE '^ *(=== |--- (PASS|SKIP))' $package.log
	fi
done
[ $status = 0 ] && echo "every kernel and model is right" || echo "SOMETHING IS WRONG: see kernel.log and worker.log"
if [ "$measure" ]; then
	./sluice-gpu measure --json "$file" 0 && echo "the figures are in $PWD/$file" || status=1
fi
exit $status
