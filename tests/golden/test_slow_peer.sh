#!/bin/bash
# How long a peer took to answer is from when it was asked to the answer, also when a timer of the thread's own divided the wait.
set -u
. "$SOURCE/tests/cli/lib.sh"
here=$SOURCE/tests/golden/viewer
version=$(sed -n 's/.*TDB_VERSION \([0-9]*\).*/\1/p' "$SOURCE"/tracedb/*.h)

says() { # SENT_AFTER_NS EVIDENCE
    {
        cat "$here/trace.sql"
        cat <<END
INSERT INTO symbol (id, module_id, name, address, size) VALUES (20, 3, 'sock_def_readable', 200, 10);
INSERT INTO stack VALUES (9, 0, 205, 20);
INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, duration_ns, threshold_ns, state, syscall, waker, reason, fired,
                   waker_stack_id) VALUES
    (2, 'offcpu>100ms,idle=yes', 1, 'offcpu', 5000000, 158000000, 153000000, 100000000, 'sleeping', 'epoll_wait', 'softirq NET_RX', 'x', 1, 9);
INSERT INTO stall_attr VALUES (2, 'peer', '127.0.0.1:80'), (2, 'idle', 1), (2, 'nodelay', 1), (2, 'accepted', 0), (2, 'sent_after_ns', $1);
END
    } >x.sql
    rm -f x.db
    sqlite3 x.db < <(cat "$SOURCE/tracedb/schema.sql" x.sql "$SOURCE/tracedb/indexes.sql"; echo "PRAGMA user_version = $version;") || fail "no database"
    "$STALLTRAP" report x.db --stall 2 >report 2>&1
    grep -qF "slow peer: 127.0.0.1:80 answered after $2" report || fail "sent $1 ns after the beginning: not '$2'" report
}

says -146000000 '299 ms; the last data to it left 146 ms before the wait'
says -40000 '153 ms; the last data to it left 40.0 us before the wait'
