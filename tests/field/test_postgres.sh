#!/bin/bash
# Debian's PostgreSQL: a statement that waits for the lock of a row, one that sleeps. How long they took is what the server logs.
. "$SOURCE/tests/field/lib.sh"
bin=$(echo /usr/lib/postgresql/*/bin)
bin=${bin##* }
[ -x "$bin/initdb" ] && id postgres >/dev/null 2>&1 || skip "PostgreSQL is not installed (package postgresql)"

port=$(free_port)
mkdir data
chown postgres data
as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups)
"${as_postgres[@]}" "$bin/initdb" -D data -A trust --no-sync --no-locale -E UTF8 >initdb.log 2>&1 || fail "initdb" initdb.log
cat >>data/postgresql.conf <<END
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
log_min_duration_statement = 150ms
log_line_prefix = '%n %p '
logging_collector = off
END
start "${as_postgres[@]}" "$bin/postgres" -D data -p "$port" 2>postgres.log
postgres=$pid
wait_for 60 listens "$port" || fail "postgres does not listen" postgres.log
export PGUSER=postgres PGHOST=127.0.0.1 PGPORT=$port
sql_of() { psql -qAtX "$@"; }
session="/usr/bin/python3 $field/inject.py statements"
wait_for 60 eval 'sql_of -c "SELECT 1" >/dev/null 2>&1' || fail "postgres does not answer" postgres.log
sql_of -c 'CREATE TABLE hot(id int PRIMARY KEY, n int); INSERT INTO hot SELECT i, 0 FROM generate_series(1, 100) i' || fail "no table" postgres.log
echo 'UPDATE hot SET n = n + 1 WHERE id = 2 + 97 * random()' >normal.sql
start pgbench -n -f normal.sql -c 2 -R 40 -T 600 postgres >pgbench.log 2>&1

# The log says when a statement was over and how long it took.
truth_of_log() { # PID STATEMENT
    awk -v pid="$1" -v statement="$2" -v name="$name" '$2 == pid && $3 == "LOG:" && index($0, statement) {
        printf "%.0f %.0f %.0f %d %s\n", ($1 * 1000 - $5 - 2) * 1000000, ($1 * 1000 + 2) * 1000000, ($5 - 20) * 1000000, pid, name }' postgres.log >truth
}

# A session that asks all the time, EACH thirty times, then ONCE; its backend is $backend.
watched() { # EACH ONCE
    : >backend
    start $session 'psql -qAtX' "$1" "$2" 0.01 >backend 2>>session.err
    wait_for 60 grep -q . backend || fail "no session" postgres.log session.err
    backend=$(head -n 1 backend)
}

wait='syscall:epoll_wait>150ms'
if row short postgres-lock; then
    watched 'UPDATE hot SET n = n + 1 WHERE id = 1;' 'SELECT 1;'
    injector $session 'psql -qAtX' 'SELECT 1;' 'BEGIN; UPDATE hot SET n = n + 1 WHERE id = 1; SELECT pg_sleep(0.3); COMMIT;' 0.015 >/dev/null
    truth_command="truth_of_log $backend UPDATE"
    caught "$backend" "$wait" --callgraph dwarf -- --kind syscall --tid "$backend" --state sleeping --syscall epoll_wait \
        --place 'WaitLatch' --place 'heap_update|heap_lock_tuple|XactLockTableWait' --says 'in epoll_wait' --never "$sleeping_false" \
        --says 'cause +database lock: PostgreSQL waited [0-9]+ ms for another transaction to end, .*; thread [0-9]+ "postgres" let it go on'
fi
if row whole postgres-table; then
    watched 'SELECT count(*) FROM hot;' 'SELECT 1;'
    injector $session 'psql -qAtX' 'SELECT 1;' 'BEGIN; LOCK TABLE hot; SELECT pg_sleep(0.3); COMMIT;' 0.015 >/dev/null
    truth_command="truth_of_log $backend SELECT"
    caught "$backend" "$wait" --callgraph dwarf -- --kind syscall --tid "$backend" --state sleeping --syscall epoll_wait \
        --place 'WaitLatch' --says 'in epoll_wait' --never "$sleeping_false" --says 'cause +database lock: PostgreSQL waited [0-9]+ ms for the lock of a table'
fi
if row short postgres-sleep; then
    watched 'SELECT count(*) FROM hot;' 'SELECT pg_sleep(0.3);'
    injector sleep 600
    truth_command="truth_of_log $backend pg_sleep"
    caught "$backend" "$wait" --callgraph dwarf -- --kind syscall --tid "$backend" --state sleeping --syscall epoll_wait \
        --place 'pg_sleep' --says 'in epoll_wait' --never "$sleeping_false" --never 'database lock' --says 'cause +own time-out: .* in epoll_wait until'
fi
kill -INT "$postgres" # with its sessions
done_rows
