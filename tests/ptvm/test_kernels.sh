#!/bin/bash
# test_kernels.sh SUITE SOURCE BUILD [take]: guest_kinds.sh on the kernel of a Debian suite, compared with kernels.table; take: the table takes
# what was found.
# test_kernels.sh doc SOURCE: whether docs/kernels.md is made of the table.
set -uo pipefail
suite=$1 source=$2
ptvm=$(realpath "$(dirname "$0")")
if [ "$suite" = doc ]; then
    diff "$source/docs/kernels.md" <(python3 "$ptvm/kernels.py" doc "$ptvm/kernels.table") || { echo "docs/kernels.md is not what kernels.table says: make kernels-table"; exit 1; }
    exit 0
fi
build=$3
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
"$ptvm/run.sh" --suite "$suite" --timeout "${KERNELS_TIMEOUT:-1500}" --share "$source" --share "$build" --out "$out" "$ptvm/guest_kinds.sh" -- "$source" "$build"
status=$?
[ -s "$out/cells" ] || exit 1
python3 "$ptvm/kernels.py" "${4:-check}" "$ptvm/kernels.table" "$suite" "$out" || status=1
exit $status
