# What the tests of foreign programs share. Sourced; needs STALLTRAP, BUILD and SOURCE. ROWS=all in the
# environment runs all rows of a test, else the short ones.
#
# A row is a stall that is made again and again beside a normal load, a trigger that a user would arm, and what must be true of the
# answer. The truth of when and how long comes from whoever made the stall: the file `truth` has a line for each,
#     START END LEAST TID NAME
# wall-clock nanoseconds before it was asked for and after it was over, how long it was at least, the thread (0: not known) and the
# row's name. What the program itself logs as slow is in LEAST.
# shellcheck shell=bash
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"
field=$SOURCE/tests/field
form=${ROWS:-short}
chmod 755 "$work"
rows=0
# What must not be said of a thread that computed: that it waited or was only ready, or what system call it was in.
computing_false='where +.*runnable|woken by +nobody: it was ready|ms in (read|write|recv|open|epoll)[a-z]*'
# Nor of one that slept.
sleeping_false='where +.*runnable|woken by +nobody: it was ready'

need() { # PROGRAM PACKAGE
    command -v "$1" >/dev/null || skip "$1 is not installed (package $2)"
}

skip() { # WHY: the whole test
    echo "skipped: $*"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "triggers need BPF, and this is not root"
[ -r /sys/kernel/btf/vmlinux ] || skip "triggers need the kernel's BTF"
need /usr/bin/python3 python3

free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
listens() { ss -Hltn "sport = :$1" | grep -q .; }

# Starts what makes the stalls: it begins as soon as the file `go` is there, and writes `truth`.
injector() { # COMMAND...
    rm -f go truth
    truth_command=:
    start "$@" 2>injector.err
    injector=$pid
}

inject() { # WHAT ARG...: inject.py
    injector /usr/bin/python3 "$field/inject.py" "$@"
}

load() { # WHAT ARG...: inject.py's normal load
    start /usr/bin/python3 "$field/inject.py" "$@" 2>>load.err
}

# Whether this row runs: `whole` rows do with ROWS=all only. A known fault is told there, and does not fail the test.
row() { # short|whole NAME [KNOWN-FALSE]
    name=$2 known=${3:-}
    [ "$1" = short ] && [ -z "$known" ] || [ "$form" = all ] || return 1
    rows=$((rows + 1))
    echo "-- $name"
}

# How many stalls were logged. Where the program itself logs, `truth_command` makes `truth` of that.
truth_command=:
true_stalls() {
    $truth_command
    lines '' truth
}
more_truth() { [ "$(true_stalls)" -ge "$1" ]; }

# Arms the trigger, lets the stalls begin, and waits for the snapshot. Then what is told is compared with the truth (check.py).
caught() { # PID TRIGGER [ARM-OPTION...] -- CHECK-OPTION...
    local target=$1 trigger=$2 options=() armed= limit=60s
    shift 2
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    [ -z "$known" ] || limit=15s
    start_arm --source sample -p "$target" --on "$trigger" --timeout $limit -o "$name" "${options[@]}"
    touch go
    end_of "$arm" 120 arm
    armed=$(grep armed: arm.err)
    wait_for 60 more_truth $(($(true_stalls) + 1)) || fail "$name: no stall was logged" injector.err # the one that fired may not be over
    kill -TERM "$injector" 2>/dev/null
    wait "$injector" 2>/dev/null
    rm -f go
    if [ $status -ne 0 ]; then
        wrong "$trigger: arm ends with $status: $(tail -n 1 arm.err)"
        return
    fi
    "$STALLTRAP" report "$name.1.db" >report 2>report.err || fail "$name: report fails" report.err
    echo "$armed"
    cat arm.out report
    if /usr/bin/python3 "$field/check.py" "$STALLTRAP" "$name.1.db" report truth "$name" "$@" >check.out 2>&1; then
        cat check.out
        [ -z "$known" ] || echo "NOW TRUE: $name was a known fault: $known"
    else
        wrong "$(cat check.out)"
    fi
}

wrong() { # MESSAGE
    if [ -n "$known" ]; then
        echo "KNOWN: $name: $known"
        echo "$1"
    else
        fail "$name: $1" truth injector.err
    fi
}

done_rows() {
    echo "$rows rows"
    exit 0
}
