#!/bin/bash
# fixtures.sh [--if-changed] OUTDIR [COMMAND...]: makes recordings of the intel_pt driver for tests of a decoder: OUTDIR/bin, the known
# programs, and OUTDIR/user, what record-user.sh and record-overflow.sh bring out of the machine (their heads tell the files), with perf's
# listings of it: NAME.cr (calls and returns), NAME.b (all branches, small ones only). Each COMMAND, a program with its arguments in one
# word, is recorded too. OUTDIR must keep its place: the recordings name the programs by their path. --if-changed does nothing when OUTDIR holds what the same machine, scripts, programs and C library made.
# The suite of the kernel is $PTVM_SUITE (default bookworm).
set -euo pipefail
. "$(dirname "$0")/common.sh"
if_changed=''
[ "${1:-}" = --if-changed ] && if_changed=1 && shift
[ $# -gt 0 ] || die "usage: fixtures.sh [--if-changed] OUTDIR [COMMAND...]"
suite=${PTVM_SUITE:-bookworm}
mkdir -p "$1/bin"
out=$(realpath "$1")
shift

need_packages gcc libc6-dev linux-perf python3-minimal
dir=$(ptvm_dir "")
made_of=$(cd "$here" && {
    echo "$(qemu_build "$dir") $(kernel_build "$dir" "$suite") $*"
    cat fixtures.sh record-*.sh run.sh guest-init.sh check_nest.py nest.c threads.c /lib/x86_64-linux-gnu/{libc.so.6,ld-linux-x86-64.so.2}
} | sha256sum | cut -c 1-64)
if [ -n "$if_changed" ] && [ "$(cat "$out/user/made-of" 2>/dev/null)" = "$made_of" ]; then
    say "$out is up to date"
    exit 0
fi

rm -rf "$out/user"
gcc -O1 -g -o "$out/bin/nest" "$here/nest.c"
gcc -O1 -g -pthread -o "$out/bin/threads" "$here/threads.c"
share=(--share "$out/bin")
for command; do
    program=$(realpath -e "${command%% *}")
    case $program in /tmp/* | /run/*) share+=(--share "$(dirname "$program")") ;; esac
done
beside=$(mktemp -d "$out/.user.XXXXXX")
trap 'rm -rf "$beside"' EXIT
"$here/run.sh" --suite "$suite" --share "$out/bin" --out "$beside" --cpu ,x-pt-ovf-period=5000 \
    "$here/record-overflow.sh" "$here/record-lib.sh" -- "$out/bin"
"$here/run.sh" --suite "$suite" "${share[@]}" --out "$beside" --timeout 900 \
    "$here/record-user.sh" "$here/record-lib.sh" -- "$out/bin" "$@"
"$here/record-list.sh" "$beside"
echo "$made_of" >"$beside/made-of"
chmod 755 "$beside"
mv -T "$beside" "$out/user"
trap - EXIT
