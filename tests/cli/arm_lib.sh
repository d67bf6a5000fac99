# What the tests of arm, doctor and their errors share. Sourced; needs STALLTRAP, BUILD and SOURCE.
set -uo pipefail
export LC_ALL=C.UTF-8
: "${STALLTRAP:?the program to test}"

# Who comes first mounts it, as perf does: the order of tests must not decide which of them work.
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
. "$SOURCE/tests/cli/perf_cache.sh"
. "$SOURCE/tests/cli/control.sh"

work=$(mktemp -d /tmp/stalltrap-test.XXXXXX)
chmod 755 "$work"
cd "$work" || exit 1
started=()
failures=0

finish() {
    local pid
    for pid in "${started[@]}"; do
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    for pid in $(pgrep -x arm_target); do # commands that outlived their arm
        case $(readlink "/proc/$pid/cwd") in "$work"*) kill -KILL "$pid" ;; esac
    done
    cd /
    rm -rf "$work"
}
trap finish EXIT

# Static: to step through a dynamic linker takes seconds on a busy machine.
cc -O1 -g -D_GNU_SOURCE -pthread -static -Wl,--build-id "$SOURCE/tests/cli/arm_target.c" -o "$work/arm_target" || exit 1

# run NAME: says what is tested now
run() {
    echo "-- $*"
}

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# is WHAT EXPECTED GOT
is() {
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# has WHAT PATTERN FILE: the file holds a line that matches
has() {
    grep -Eq -- "$2" "$3" || { fail "$1: no line matches '$2' in:"; sed 's/^/    /' "$3" >&2; }
}

lacks() {
    [ -e "$3" ] || { fail "$1: there is no $3"; return; }
    ! grep -Eq -- "$2" "$3" || { fail "$1: a line matches '$2' in:"; sed 's/^/    /' "$3" >&2; }
}

# start_target MODE...: runs arm_target in the background; its pid is in $target
start_target() {
    "$work/arm_target" "$@" >"$work/target.out" &
    target=$!
    disown "$target" # bash then says nothing when it is killed
    started+=("$target")
}

# arm OPTION...: arms in the background, returns when it said that it is live; its pid is in $arm. What it prints goes to
# out and err.
arm() {
    local line=
    rm -f ready
    mkfifo ready
    "$STALLTRAP" arm --source step --ready-fd 9 "$@" >out 2>err 9>ready &
    arm=$!
    started+=("$arm")
    read -r -t 300 line <ready
    is "arm tells that it is live" armed "$line"
}

# wait_arm: its exit status is in $status
wait_arm() {
    wait "$arm"
    status=$?
}

# wait_for WHAT COMMAND...: up to five minutes
wait_for() {
    local what=$1 i
    shift
    for ((i = 0; i < 3000; i++)); do
        "$@" && return 0
        sleep 0.1
    done
    fail "waited for: $what"
}

# no_leftovers: nothing half-written in the folder
no_leftovers() {
    local left
    left=$(find . -name '.*.??????' | head -3)
    is "files that were not finished" "" "$left"
}

# straced OPTION...: strace on every thread of $arm, and of what it starts, into strace.out; returns once each is traced
straced() {
    strace -f -qq -p "$arm" -o strace.out "$@" &
    wait_for "strace" all_traced
}

all_traced() { ! grep -q '^TracerPid:[[:space:]]*0$' "/proc/$arm"/task/*/status; }

alive() {
    kill -0 "$1" 2>/dev/null && [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)" != Z ]
}

# perf_reads FILE: Debian's perf reads all of it without a complaint
perf_reads() {
    perf script --itrace=cre -f -i "$1" >perf.calls 2>perf.err || fail "perf script -i $1 fails"
    is "perf script's complaints about $1" "" "$(head -3 perf.err)"
    is "perf script's trace errors in $1" 0 "$(grep -c 'trace error' perf.calls)"
    perf report --dump -f -i "$1" >perf.dump 2>perf.err || fail "perf report --dump -i $1 fails"
    is "perf report's complaints about $1" "" "$(grep -v '^# To display the perf.data header info' perf.err | grep . | head -3)"
}

# perf_events FILE N: it has N events, and each says what perf needs: else perf looks for a map of the kernel, or takes the records of
# one for those of another
perf_events() {
    perf evlist -v -i "$1" >perf.events 2>perf.err || fail "perf evlist -i $1 fails"
    is "events of $1" "$2" "$(wc -l <perf.events)"
    is "events of $1 that are not of user code only" "" "$(grep -v 'exclude_kernel: 1' perf.events)"
    is "events of $1 whose records carry no id, time and thread" "" \
        "$(grep -Ev 'sample_type: [^,]*TID\|TIME\|[^,]*IDENTIFIER.*sample_id_all: 1' perf.events)"
}

summary() {
    [ "$failures" = 0 ] && echo "all passed" && exit 0
    echo "$failures failures" >&2
    exit 1
}
