#!/bin/bash
# Servers nobody here wrote, under load: Debian's socat and nginx stall as the reader of what they write is slow, haproxy waits for a slow server.
# The trap fires, and a sampled trace has the stack each waited in, down to the kernel, its state, and who woke it.
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"
peers=$SOURCE/tests/cli/peers.py

# What the database must know of the stall that fired: KERNEL is a function that the thread waited in, and USER one, WAKER who woke it.
check_stall() { # DB SYSCALL STATE KERNEL USER WAKER
    local of="SELECT s.* FROM stalls s, meta m WHERE m.key = 'trigger_stall_id' AND s.id = m.value"
    [ "$(sql "$1" "SELECT syscall FROM ($of)")" = "$2" ] || fail "$1: not in $2" arm.out
    sql "$1" "SELECT c.function FROM calls c, ($of) s WHERE c.thread_id = s.thread_id AND c.flags & 32
        AND c.start_ns <= s.start_ns + 50000 AND c.end_ns >= s.start_ns + s.duration_ns - 1000000 ORDER BY c.depth" >frames
    grep -qxE "$4" frames || fail "$1: no $4 in the stack it waited in" frames
    grep -qE "^(__x64_sys|ksys|__sys)_$2\$" frames || fail "$1: the system call is not in the stack" frames
    grep -qxE "$5" frames || fail "$1: no $5 in the stack it waited in" frames
    [ "$(sql "$1" "SELECT c.function FROM offcpu o JOIN calls c ON c.id = o.call_id, ($of) s WHERE o.thread_id = s.thread_id
        AND o.start_ns <= s.start_ns + 100000 AND o.end_ns > s.start_ns + s.duration_ns / 2")" = __schedule ] || fail "$1: the wait is in no call" frames
    sql "$1" "SELECT m.name, m.detail FROM mark m, ($of) s WHERE m.thread_id = s.thread_id
        AND m.time_ns BETWEEN s.start_ns - 100000 AND s.start_ns + s.duration_ns + 5000000 ORDER BY m.time_ns" >marks
    grep -qx "offcpu,$3 in $2" marks || fail "$1: no mark of how it went off its CPU" marks arm.out
    grep -qxE "woken,\"?by $6.*" marks || fail "$1: no mark of who woke it" marks arm.out
    sql "$1" "SELECT waker FROM ($of)" | grep -qE "$6" || fail "$1: the trigger tells of another waker" arm.out
    echo "$1: $(head -n 1 arm.out)"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
listens() { ss -Hltn "sport = :$1" | grep -q .; }
trap_of() { # NAME PID TRIGGER
    start_arm --source sample --callgraph dwarf -p "$2" --on "$3" --warm-up 500ms --after 200ms --timeout 60s -o "$1"
    end_of "$arm" 90 arm
    [ $status -eq 0 ] || fail "$1: arm ends with $status" arm.out arm.err
}

keep_unseen_cpus_awake
mkfifo log
start python3 "$peers" drain log >drain.out
wait_for 20 grep -q ready drain.out || fail "nobody reads the log"

out=$(free_port) in=$(free_port)
start socat -u TCP-LISTEN:"$in",bind=127.0.0.1 OPEN:log,wronly
socat=$pid
wait_for 10 listens "$in" || fail "socat does not listen"
start socat -u OPEN:/dev/zero TCP:127.0.0.1:"$in"
trap_of socat "$socat" 'offcpu>20ms'
check_stall socat.1.db write sleeping '(anon_)?pipe_write' '__GI___libc_write' 'thread [0-9]+ "+log-reader'
kill "$socat"

cat >nginx.conf <<END
daemon off; worker_processes 1; user root; error_log stderr; pid $work/nginx.pid;
events { worker_connections 64; }
http {
    access_log $work/log combined; client_body_temp_path $work/t1; proxy_temp_path $work/t2; fastcgi_temp_path $work/t3;
    uwsgi_temp_path $work/t4; scgi_temp_path $work/t5; keepalive_requests 100000000;
    server { listen 127.0.0.1:$in; location / { proxy_pass http://127.0.0.1:$out; } }
    server { listen 127.0.0.1:$out; location / { return 200 "ok"; } }
}
END
wait_for 10 eval '! listens $in' || fail "socat has not ended"
start nginx -c "$work/nginx.conf" -e stderr 2>nginx.err
nginx=$pid
wait_for 20 listens "$in" || fail "nginx does not listen" nginx.err
wait_for 20 pgrep -P "$nginx" >/dev/null || fail "nginx has no worker" nginx.err
start python3 "$peers" load "$in"
trap_of nginx "$(pgrep -P "$nginx")" 'offcpu>20ms'
check_stall nginx.1.db write sleeping '(anon_)?pipe_write' 'ngx_http_log_request|ngx_process_events_and_timers' 'thread [0-9]+ "+log-reader'
kill "$nginx"

# The wait for the slow server is one in epoll_wait, for work: it counts only with idle=yes. A second thread would wait for nothing.
# What ends it is the answer, or a time of haproxy's own.
start python3 "$peers" slow slow.port
wait_for 20 test -s slow.port || fail "the slow server is not there"
cat >haproxy.cfg <<END
global
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
listen it
    bind 127.0.0.1:$in
    server slow 127.0.0.1:$(cat slow.port)
END
wait_for 10 eval '! listens $in' || fail "nginx has not ended"
start haproxy -f haproxy.cfg -db 2>haproxy.err
haproxy=$pid
wait_for 20 listens "$in" || fail "haproxy does not listen" haproxy.err
start python3 "$peers" load "$in"
trap_of haproxy "$haproxy" 'offcpu>20ms,idle=yes'
check_stall haproxy.1.db epoll_wait sleeping 'ep_poll|do_epoll_wait' 'run_poll_loop' '(softirq NET_RX|irq [0-9]+|an interrupt)'
