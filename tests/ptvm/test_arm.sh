#!/bin/bash
# test_arm.sh SUITE SOURCE BUILD NAME[:ARG]...: the tests guest_arm_NAME.sh of our own recorder, in one boot of the machine with that
# kernel; then the comparisons that are made outside. What comes out of the machine is kept in the folder ARM_OUT if that is given. On a
# computer that has Intel PT itself (or with SUITE `native`) all of it runs there instead, as root, unless STALLTRAP_PTVM_ALWAYS is set.
set -uo pipefail
suite=$1 source=$2 build=$3
shift 3
[ ! -d /sys/bus/event_source/devices/intel_pt ] || [ -n "${STALLTRAP_PTVM_ALWAYS:-}" ] || suite=native
ptvm=$(realpath "$(dirname "$0")")
if [ -n "${ARM_OUT:-}" ]; then
    mkdir -p "$ARM_OUT" && out=$(realpath "$ARM_OUT") || exit 1
else
    out=$(mktemp -d) || exit 1
    trap 'rm -rf "$out"' EXIT
fi
export SOURCE=$source STALLTRAP=$build/stalltrap
where=(--suite "$suite" --timeout "${ARM_TIMEOUT:-600}" --share "$source" --share "$build")
[ "$suite" != native ] || where=(--native)
mapfile -t scripts < <(ls "$ptvm"/guest_arm_*.sh | grep -v '/guest_arm_all\.sh$')
"$ptvm/run.sh" "${where[@]}" --out "$out" "$ptvm/guest_arm_all.sh" "${scripts[@]}" "$ptvm/arm-lib.sh" -- "$source" "$build" "$@"
status=$?
if [ -n "$(find "$out" -name checks)" ]; then
    bash "$ptvm/check_arm.sh" "$out" || status=1
fi
exit $status
