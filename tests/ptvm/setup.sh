#!/bin/bash
# setup.sh [DIR] [SUITE...]: makes the PT machine in DIR: QEMU with Intel PT, and the kernel of each Debian suite (default: bookworm; 6.1.
# trixie-backports: 7.x, which has aux_pause). DIR defaults to $STALLTRAP_PTVM, else ~/.cache/stalltrap-ptvm (or below $XDG_CACHE_HOME).
# What is there already, made from the same patch and recipe, is taken as it is. Everything is built beside its place and renamed, so
# what stands under its name is whole. As root it installs the packages it misses; else it says which.
set -euo pipefail
. "$(dirname "$0")/common.sh"
case ${1:-} in -h | --help) sed -n '2,5s/^# //p' "$0"; exit 0 ;; esac

dir=$(ptvm_dir "${1:-}")
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- bookworm
mkdir -p "$dir" || die "cannot make the folder $dir"
dir=$(cd "$dir" && pwd)
[ -w "$dir" ] || die "cannot write into $dir"

# Two set-ups at once (tests of two build folders) would do the work twice: the second waits, then finds it done.
exec 9>"$dir/.lock"
flock -n 9 || { say "another set-up is at work in $dir; waiting for it" && flock 9; }
rm -rf "$dir"/.build.* # of a set-up that was killed: the lock is ours

# make NAME RECIPE [ARG...]: builds NAME with RECIPE unless it is there.
make() {
    local name=$1 recipe=$2 beside
    shift 2
    if [ -e "$name" ]; then
        touch "$name"
        return
    fi
    beside=$(mktemp -d "$dir/.build.XXXXXX")
    trap 'rm -rf "$beside"' EXIT
    chmod 755 "$beside"
    say "making $name"
    bash "$here/$recipe" "$beside" "$@" || die "could not make $name (nothing was left behind)"
    mv -T "$beside" "$name"
    trap - EXIT
}

make "$(qemu_build "$dir")" build-qemu.sh
for suite; do
    make "$(kernel_build "$dir" "$suite")" build-kernel.sh "$suite"
done
# Builds of older patches and recipes that nobody has used for a month.
find "$dir" -maxdepth 1 \( -name 'qemu-*' -o -name 'kernel-*' \) -mtime +30 -exec rm -rf {} +
say "ready in $dir: $(cat "$(qemu_build "$dir")/version"); $(for suite; do printf '%s: Linux %s; ' "$suite" "$(cat "$(kernel_build "$dir" "$suite")/version")"; done)"
