#!/bin/bash
# fixtures.sh OUTDIR [COMMAND...]: makes recordings of the intel_pt driver for tests of a decoder: OUTDIR/bin, the known programs, and
# OUTDIR/user, what record-user.sh brings out of the machine (its head tells the files). Each COMMAND, a program with its arguments in
# one word, is recorded too. OUTDIR must keep its place: the recordings name the programs by their path.
# The suite of the kernel is $PTVM_SUITE (default bookworm).
set -euo pipefail
. "$(dirname "$0")/common.sh"
[ $# -gt 0 ] || die "usage: fixtures.sh OUTDIR [COMMAND...]"
mkdir -p "$1/bin"
out=$(realpath "$1")
shift

need_packages gcc libc6-dev linux-perf python3-minimal
gcc -O1 -g -o "$out/bin/nest" "$here/nest.c"
gcc -O1 -g -pthread -o "$out/bin/threads" "$here/threads.c"
share=(--share "$out/bin")
for command; do
    program=$(realpath -e "${command%% *}")
    case $program in /tmp/* | /run/*) share+=(--share "$(dirname "$program")") ;; esac
done
beside=$(mktemp -d "$out/.user.XXXXXX")
trap 'rm -rf "$beside"' EXIT
"$here/run.sh" --suite "${PTVM_SUITE:-bookworm}" --share "$out/bin" --out "$beside" --cpu ,x-pt-ovf-period=5000 \
    "$here/record-overflow.sh" "$here/record-lib.sh" -- "$out/bin"
"$here/run.sh" --suite "${PTVM_SUITE:-bookworm}" "${share[@]}" --out "$beside" --timeout 600 \
    "$here/record-user.sh" "$here/record-lib.sh" "$here/check_nest.py" -- "$out/bin" "$@"
rm -rf "$out/user"
chmod 755 "$beside"
mv -T "$beside" "$out/user"
trap - EXIT
