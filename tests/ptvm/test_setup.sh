#!/bin/bash
# test_setup.sh: setup.sh never leaves a half-made machine under its name, builds once for each recipe, and says what failed. The
# recipes are replaced by short ones, so neither network nor compiler is needed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "FAILED: $*; setup.sh said:"
    cat "$tmp/said"
    exit 1
}

recipes() { # QEMU-RECIPE: what build-qemu.sh does behind its first line
    cp "$here/setup.sh" "$here/common.sh" "$here/initramfs-init.sh" "$tmp/"
    echo patch >"$tmp/intel-pt-tcg.patch"
    printf 'set -e\necho qemu >>%q\n%s\n' "$tmp/builds" "$1" >"$tmp/build-qemu.sh"
    printf 'set -e\necho "kernel $2" >>%q\necho "kernel of $2" >"$1/version"\n' "$tmp/builds" >"$tmp/build-kernel.sh"
    : >"$tmp/builds"
}

setup() { bash "$tmp/setup.sh" "$tmp/cache" "$@" >"$tmp/said" 2>&1; }

builds() { tr '\n' ' ' <"$tmp/builds"; }

# A recipe that fails half-way.
recipes 'echo half >"$1/qemu-system-x86_64"; exit 3'
setup && fail "a failing build was taken for success"
grep -q 'could not make' "$tmp/said" || fail "no word of the failure"
[ -z "$(ls "$tmp/cache")" ] || fail "left behind: $(ls "$tmp/cache")"

# One that is killed, and the set-up with it.
recipes 'echo half >"$1/qemu-system-x86_64"; kill -9 $PPID $$'
setup && fail "a killed build was taken for success"
[ -z "$(ls "$tmp/cache")" ] || fail "under a machine's name: $(ls "$tmp/cache")"

# One that works: everything once, nothing the second time, a new suite alone.
recipes 'echo v1 >"$1/version"'
setup bookworm || fail "the set-up failed"
[ "$(builds)" = 'qemu kernel bookworm ' ] || fail "built: $(builds)"
[ -z "$(find "$tmp/cache" -name '.build.*')" ] || fail "the killed build's folder is still there"
setup bookworm || fail "the second set-up failed"
[ "$(builds)" = 'qemu kernel bookworm ' ] || fail "built again: $(builds)"
setup bookworm other || fail "another suite failed"
[ "$(builds)" = 'qemu kernel bookworm kernel other ' ] || fail "for another suite built: $(builds)"

# Another patch is another build, beside the first.
echo changed >"$tmp/intel-pt-tcg.patch"
setup || fail "the set-up with another patch failed"
[ "$(builds)" = 'qemu kernel bookworm kernel other qemu ' ] || fail "for another patch built: $(builds)"
[ "$(find "$tmp/cache" -maxdepth 1 -name 'qemu-*' | wc -l)" = 2 ] || fail "the first build is gone"

# Two at once: one builds.
recipes 'sleep 1; echo v2 >"$1/version"'
rm -rf "$tmp/cache"
bash "$tmp/setup.sh" "$tmp/cache" >/dev/null 2>&1 &
sleep 0.3
setup || fail "the second of two set-ups failed"
wait
[ "$(builds)" = 'qemu kernel bookworm ' ] || fail "two set-ups at once built: $(builds)"

# A folder that cannot be made.
echo file >"$tmp/file"
bash "$tmp/setup.sh" "$tmp/file/cache" >"$tmp/said" 2>&1 && fail "a machine in a file"
grep -q "cannot make the folder $tmp/file/cache" "$tmp/said" || fail "no word of the folder"
echo "setup.sh: as expected"
