#!/bin/bash
# Where a user may lock little memory and others of his recordings have it: arm makes its rings smaller as long as there is room, and is refused
# then; doctor says the same, in the same words.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: another user is needed"; exit 77; }
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || { echo "skipped: kernel.perf_event_paranoid lets no user record"; exit 77; }
uid=$((100000 + $$)) # whose share of locked memory nobody else uses
chmod 755 "$work"
mkdir own
cp "$STALLTRAP" own/st
chown -R "$uid" own
cd own || exit 1
as=(setpriv --reuid "$uid" --regid "$uid" --clear-groups --inh-caps=-all prlimit --memlock=0)
export XDG_RUNTIME_DIR=$work/own
start "${as[@]}" sleep 36000
target=$pid

refused=
for n in $(seq 100); do
    start "${as[@]}" ./st arm --source sample --no-decode --ready-fd 9 -p "$target" -o "x$n" 9>"ready$n" 2>"err$n"
    ended() { grep -qxs armed "ready$n" || ! running "$pid"; }
    wait_for 300 ended || fail "arm $n" "err$n"
    running "$pid" && continue
    wait "$pid"
    status=$?
    refused=$n
    break
done
[ -n "$refused" ] || { echo "skipped: this user may lock as much as 100 recordings take"; exit 77; }
[ "$status" -eq 3 ] || fail "arm is refused with $status" "err$refused"
[ "$refused" -gt 1 ] || fail "the first recording has no room" "err$refused"
"${as[@]}" ./st doctor >doctor || fail "doctor ends with $?" doctor
sed -n '1s/^stalltrap arm: //p; 2,$p' "err$refused" >words
grep -q 'limit of locked memory' words || fail "arm is refused for something else" words
while read -r line; do
    grep -qF "$line" doctor || fail "doctor does not say: $line" doctor
done <words
grep -q '^no   sample ' doctor || fail "doctor says that sample works" doctor
# A ring that is smaller than the default is told.
cat err1
exit 0
