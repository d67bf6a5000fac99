#!/bin/bash
# Debian's nginx and haproxy in front of a server that is stopped now and then. How long it took to answer is what their own logs say.
. "$SOURCE/tests/field/lib.sh"
need nginx nginx-light
need haproxy haproxy

nginx_conf() { # NAME PORT LOCATION
    mkdir -p "$1"
    cat >"$1.conf" <<END
daemon off; worker_processes 1; user root; error_log stderr; pid $work/$1.pid;
events { worker_connections 64; }
http {
    log_format times '\$msec \$request_time'; access_log $work/$1.log times;
    client_body_temp_path $work/$1/1; proxy_temp_path $work/$1/2; fastcgi_temp_path $work/$1/3; uwsgi_temp_path $work/$1/4; scgi_temp_path $work/$1/5;
    server { listen 127.0.0.1:$2; location / { $3 } }
}
END
}

start_nginx() { # NAME PORT: its worker is $worker
    start nginx -c "$work/$1.conf" -e stderr 2>"$1.err"
    nginx=$pid
    wait_for 60 listens "$2" || fail "$1 does not listen" "$1.err"
    wait_for 60 eval 'worker=$(pgrep -P "$nginx")' || fail "$1 has no worker" "$1.err"
}

# When a request was over, and how long it took, in seconds.
truth_of_nginx() {
    awk -v name="$name" '$2 > 0.15 { printf "%.0f %.0f %.0f 0 %s\n", ($1 - $2 - 0.002) * 1e9, ($1 + 0.002) * 1e9, ($2 - 0.02) * 1e9, name }' nginx.log >truth
}

# When a connection was accepted, seconds and milliseconds, and the milliseconds until its request was over.
truth_of_haproxy() {
    awk -v name="$name" '$3 > 150 { at = $1 + $2 / 1000
        printf "%.0f %.0f %.0f 0 %s\n", (at - 0.002) * 1e9, (at + $3 / 1000 + 0.002) * 1e9, ($3 - 20) * 1e6, name }' haproxy.log >truth
}

behind=$(free_port)
nginx_conf behind "$behind" 'return 200 "ok";'
start_nginx behind "$behind"
behind_worker=$worker

if row short nginx; then
    port=$(free_port)
    nginx_conf nginx "$port" "proxy_pass http://127.0.0.1:$behind;"
    start_nginx nginx "$port"
    load http_load "$port"
    inject stop "$behind_worker"
    truth_command=truth_of_nginx
    caught "$worker" 'offcpu>150ms,idle=yes' --callgraph dwarf -- --kind offcpu --tid "$worker" --state sleeping --syscall epoll_wait \
        --place 'ngx_process_events_and_timers|ngx_epoll_.*|ngx_worker_.*' --says 'cause +slow peer: 127\.0\.0\.1' --never "$sleeping_false" \
        --never 'usually idle' --took 'answered after ([0-9.]+) (us|ms|s)'
    kill -CONT "$behind_worker"
fi
if row short haproxy; then
    port=$(free_port)
    cat >haproxy.cfg <<END
global
    nbthread 1
    log stdout format raw local0
defaults
    mode http
    option httpclose
    timeout connect 5s
    timeout client 20s
    timeout server 20s
    log global
    log-format "%Ts %ms %Ta"
listen it
    bind 127.0.0.1:$port
    server behind 127.0.0.1:$behind
END
    start haproxy -f haproxy.cfg -db >haproxy.log 2>haproxy.err
    haproxy=$pid
    wait_for 60 listens "$port" || fail "haproxy does not listen" haproxy.err
    load http_load "$port"
    inject stop "$behind_worker"
    truth_command=truth_of_haproxy
    # A timer of haproxy's own may divide the wait; the first part then ends by that, and not by the answer.
    caught "$haproxy" 'offcpu>100ms,idle=yes' --callgraph dwarf -- --part --kind offcpu --tid "$haproxy" --state sleeping --syscall epoll_wait \
        --place 'run_poll_loop' --says 'in epoll_wait' --never "$sleeping_false" \
        --took 'answered after ([0-9.]+) (us|ms|s)'
    kill -CONT "$behind_worker"
fi
done_rows
