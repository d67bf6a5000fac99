#!/bin/bash
# test_outside.sh OUTDIR: what fixtures.sh brought out of the machine is enough to decode it elsewhere: perf on the host lists the same
# branches, byte for byte.
set -euo pipefail
cd "$1/user"
fields=tid,pid,cpu,time,flags,ip,addr,sym,symoff,dso
n=0
for listing in *.cr; do
    name=${listing%.cr}
    [ -s "$listing" ] || continue # the last part of --switch-output has no trace, and perf 6.1 dies of some such files
    case $name in *-untimed) f=${fields/time,/} ;; *) f=$fields ;; esac
    perf --buildid-dir "$PWD/debug" script -i "$name.data" --itrace=cre --ns -F "$f" 2>/dev/null | cmp - "$listing" ||
        { echo "FAILED: $name decodes to something else here"; exit 1; }
    n=$((n + 1))
done
[ $n -ge 17 ] || { echo "FAILED: only $n recordings in $1"; exit 1; }
grep -q 'vdso' threads-40.cr || { echo "FAILED: threads-40 made no call into the vdso"; exit 1; }
echo "$n recordings decode on the host as in the machine"
