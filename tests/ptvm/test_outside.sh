#!/bin/bash
# test_outside.sh OUTDIR: what fixtures.sh brought out of the machine is enough to decode it elsewhere: perf on the host lists the same
# calls as in there, byte for byte.
set -euo pipefail
cd "$1/user"
n=0
for listing in inside/*.cr; do
    cmp "$listing" "$(basename "$listing")" || { echo "FAILED: $listing: decodes to something else here"; exit 1; }
    n=$((n + 1))
done
[ $n -ge 3 ] || { echo "FAILED: only $n recordings were decoded in the machine"; exit 1; }
n=$(find . -maxdepth 1 -name '*.cr' -size +0 | wc -l)
[ "$n" -ge 17 ] || { echo "FAILED: only $n recordings in $1"; exit 1; }
grep -q 'vdso' threads-40.cr || { echo "FAILED: threads-40 made no call into the vdso"; exit 1; }
echo "$n recordings decode on the host, those that were decoded in the machine as there"
