#!/bin/bash
# Debian's Python: a sleep, a lock of a file, a lock between threads, a regular expression that computes. The program logs how long they took.
. "$SOURCE/tests/field/lib.sh"

app() { # ARG...
    rm -f prepared
    injector /usr/bin/python3 "$field/app.py" "$name" "$@"
    python=$injector
    wait_for 60 test -e prepared || fail "$name: not prepared" injector.err
}

# The stall's line of Python, as the program itself wrote it down.
as_written() {
    grep -qF "  Python    $(cat where)" report || fail "$name: the report has not the frames '$(cat where)'" report
    # Nor is what marks them in a record (base/stall_record.h) an address of the user stack, in any of the stalls.
    [ "$("$STALLTRAP" query "$name.1.db" 'SELECT count(*) AS n FROM stack WHERE address IN (-768, -1024)' --format csv | tail -n 1)" = 0 ] ||
        fail "$name: marks are taken for frames" report
}

if row short python-sleep; then
    app
    caught "$python" 'syscall:clock_nanosleep>150ms' -- --kind syscall --tid "$python" --state sleeping --syscall clock_nanosleep \
        --place '.*clock_nanosleep.*' --says 'clock_nanosleep' --says 'woken by +its own time-out' --says 'cause +own time-out' \
        --never "$sleeping_false"
    as_written
fi
file_lock() { # SYSTEM-CALL INJECTOR
    app "$work/lock"
    start /usr/bin/python3 "$field/inject.py" "$2" "$work/lock"
    caught "$python" 'offcpu>150ms' -- --kind offcpu --tid "$python" --state sleeping --syscall "$1" --waker 'thread [0-9]+ "python3"' \
        --place ".*$1.*" --says "in $1" --says "cause +lock contention: a lock of the file $work/lock, asked for by $1; (process [0-9]+ \"python3\" had taken it; )?thread $pid \"python3\" let go of it"
    as_written
    kill "$pid" 2>/dev/null
}
if row short python-flock; then
    file_lock flock flock
fi
if row short python-fcntl; then
    file_lock fcntl record_lock
fi
if row short python-lock; then
    app
    caught "$python" 'offcpu>150ms,idle=yes' --callgraph dwarf -- --kind offcpu --thread worker --state sleeping --syscall futex \
        --waker 'thread [0-9]+ "holder"' --place 'PyThread_acquire_lock_timed' --says 'woken by +thread [0-9]+ "holder"' \
        --never 'waker in +clock_nanosleep'
    as_written
fi
if row short python-holder; then # one that has ended when it fires: who let go of the lock is known
    app
    caught "$python" 'offcpu>285ms,idle=yes' -- --kind offcpu --thread worker --state sleeping --syscall futex \
        --waker 'thread [0-9]+ "holder"' --says 'woken by +thread [0-9]+ "holder"'
    as_written
    grep -qF "  by Python $(cat released)" report || fail "$name: the report has not the holder's frames '$(cat released)'" report
fi
if row whole python-busy; then
    app
    caught "$python" 'busy>150ms' --callgraph dwarf -- --kind busy --tid "$python" --place '_PyEval_EvalFrameDefault' \
        --never "$computing_false"
fi
done_rows
