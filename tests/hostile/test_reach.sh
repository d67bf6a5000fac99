#!/bin/bash
# What somebody reaches who runs code of his own in the process that decodes: a table, and each line of it says "nothing".
. "$(dirname "$0")/../cli/arm_lib.sh"
hostile=$BUILD/tests/hostile/taken_over
echo "what root alone may read" >private
chmod 600 private
: >input
export STALLTRAP_TARGET=$work/private

# reach NAME [COMMAND...]: how that attack went, where decode is started by that command
reach() {
    local name=$1
    shift
    (
        [ "$name" = disk-by-large-spills ] && ulimit -f 16384 # KiB: a file's; all of them together get four times that
        STALLTRAP_ATTACK=$name timeout 60 "$@" "$hostile" decode input --stats --memory 64M >reached 2>why
    )
    case $? in
    0) tail -n 1 reached ;;
    1) sed -n 's/.*it made the system call \([a-z0-9_]*\).*/ended: \1/p; s/.*was ended by signal \(.*\)/ended by signal \1/p
               s/.*decoding it takes \(more than .*\)/ended: \1/p; s/.*it started \(more than [0-9]* others\).*/ended: \1/p' why ;;
    *) echo "UNKNOWN $?" ;;
    esac
}

# what_became_of CHILD: of the attack that leaves a process behind
what_became_of() {
    local child=${1//[!0-9]/}
    outlived() { ! alive "$child"; }
    [ -n "$child" ] || { echo "UNKNOWN $1" && return; }
    wait_for "the end of the worker's child" outlived && echo "ended with the worker" && return
    kill -KILL "$child"
    echo "REACHED: it is still there"
}

# attacks [COMMAND...]: all of them
attacks() {
    local name got
    while read -r name; do
        got=$(reach "$name" "$@")
        [ "$name" = child-that-stays ] && got=$(what_became_of "$got")
        printf '    %-30s %s\n' "$name" "$got"
        case $got in
        "" | REACHED* | UNKNOWN*) fail "$name: '$got'" ;;
        esac
    done <attacks
}

run "as $(id -un)"
"$hostile" decode input --stats >attacks || fail "no list of attacks"
[ "$(wc -l <attacks)" -gt 40 ] || fail "a list of $(wc -l <attacks) attacks"
attacks
if [ "$(id -u)" = 0 ]; then # a core file begins as a program does
    { printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\4\0\76\0'; head -c 4096 /dev/zero; } >core
    chmod 600 core
    is "a private core file" "Permission denied" "$(STALLTRAP_TARGET=$work/core reach ask-for-a-private-file)"
    is "a file of /proc that everybody may read" "Permission denied" "$(STALLTRAP_TARGET=/proc/1/stat reach ask-for-a-private-file)"
fi
is "the private file" "what root alone may read" "$(cat private)"
[ ! -e /tmp/stalltrap-was-here ] || fail "something was made in /tmp"

if [ "$(id -u)" = 0 ]; then
    run "as the user nobody, whose own file is the private one"
    cp "$hostile" taken_over
    hostile=$work/taken_over
    echo "what nobody alone may read" >theirs
    chown 65534 theirs
    chmod 600 theirs
    STALLTRAP_TARGET=$work/theirs attacks setpriv --reuid 65534 --regid 65534 --clear-groups
    is "that file" "what nobody alone may read" "$(cat theirs)"
    hostile=$BUILD/tests/hostile/taken_over
fi

# Without those that need something of the worker, or start processes, which "child-reads-etc-shadow" does too.
run "in the child that reads files of a target"
grep -vE '^(disk-by|memory-(under|of)|many-children|child-that)' attacks >few
[ "$(wc -l <few)" -gt 35 ] || fail "a list of $(wc -l <few) attacks"
while read -r name; do
    timeout 60 "$hostile" confined "$name" >reached 2>why
    got=$(sed -n 's/.*was ended by signal \(.*\)/ended by signal \1/p; t; p' reached)
    printf '    %-30s %s\n' "$name" "$got"
    case $got in
    "ended by signal 31 (Bad system call)" | "Cannot allocate memory" | "Bad file descriptor") ;;
    *) fail "$name: '$got'" ;;
    esac
done <few
[ ! -e /tmp/stalltrap-was-here ] || fail "something was made in /tmp"

run "what the kernel says of that process"
STALLTRAP_ATTACK=wait "$hostile" decode input --stats >reached 2>why &
decode=$!
disown "$decode"
started+=("$decode")
wait_for "the worker" grep -q here reached
worker=$(pgrep -P "$decode")
status() { awk -v f="$1:" '$1 == f { $1 = ""; print substr($0, 2) }' "/proc/$worker/status"; }
is "capabilities" "0000000000000000" "$(status CapEff | tr -d ' ')"
is "capabilities it may get" "0000000000000000" "$(status CapPrm | tr -d ' ')"
is "no new privileges" 1 "$(status NoNewPrivs)"
is "seccomp's filter" 2 "$(status Seccomp)"
is "oom_score_adj" 1000 "$(cat "/proc/$worker/oom_score_adj")"
is "core files" "0 0" "$(awk '/^Max core/ {print $5, $6}' "/proc/$worker/limits")"
for limit in 'cpu time' 'file size' 'data size' 'address space'; do
    grep -q "^Max $limit *unlimited" "/proc/$worker/limits" && fail "no limit of $limit"
done
is "descriptors that are no stdio and no socket" "" \
    "$(find "/proc/$worker/fd" -type l -printf '%f %l\n' | awk '$1 > 2 && $2 !~ /^socket:/')"
if [ "$(id -u)" = 0 ]; then
    is "user and group" "65534 65534" "$(status Uid | awk '{print $1}') $(status Gid | awk '{print $1}')"
    is "other groups" "" "$(status Groups | xargs)"
    for space in net mnt ipc uts; do
        [ "$(readlink "/proc/$worker/ns/$space")" != "$(readlink "/proc/self/ns/$space")" ] || fail "it has our namespace $space"
    done
    is "files of its root" "" "$(ls -A "/proc/$worker/root/")"
fi

run "it ends with the process that was started"
kill -KILL "$decode"
gone() { ! alive "$worker"; }
wait_for "its end" gone

summary
