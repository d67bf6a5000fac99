#!/bin/bash
# Servers with a connection a request, stopped now and then: what waits is not data in a socket of theirs, but connections that are not
# accepted. Debian's Python, nginx and redis.
. "$SOURCE/tests/field/lib.sh"

# The thread is the one that accepted last.
stopped() { # NAME-OF-ITS-THREADS PORT PID...
    local thread=$1 port=$2 target
    shift 2
    target=$(IFS=, && echo "$*")
    wait_for 60 listens "$port" || fail "$name does not listen" "$name.log"
    load http_load "$port"
    inject stop_server "$name" "$@"
    caught "$target" 'socket>100ms,side=unaccepted' -- --kind socket --thread "$thread" --slack 50
    grep -qE "^trap 1: thread [0-9]+ \"$thread\" had [0-9]+ connections? waiting to be accepted for [0-9.]+ ms( so far)? on [0-9.]+:$port\$" arm.out ||
        fail "$name: not told as connections" arm.out
    kill -CONT "$@"
}

if row short python-http; then
    port=$(free_port)
    start /usr/bin/python3 -m http.server "$port" --bind 127.0.0.1 >http.log 2>&1
    stopped 'python3' "$port" "$pid"
fi
if row short nginx-http && command -v nginx >/dev/null; then
    port=$(free_port)
    mkdir nginx
    cat >nginx.conf <<END
daemon off; worker_processes 2; user root; error_log stderr; pid $work/nginx.pid;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path $work/nginx/1; proxy_temp_path $work/nginx/2; fastcgi_temp_path $work/nginx/3; uwsgi_temp_path $work/nginx/4; scgi_temp_path $work/nginx/5;
    server { listen 127.0.0.1:$port; location / { return 200 "ok"; } }
}
END
    start nginx -c "$work/nginx.conf" -e stderr 2>nginx-http.log
    nginx=$pid
    wait_for 60 eval '[ "$(pgrep -c -P "$nginx")" = 2 ]' || fail "nginx has no workers" nginx-http.log
    mapfile -t workers < <(pgrep -P "$nginx")
    stopped 'nginx' "$port" "$nginx" "${workers[@]}"
fi
if row short redis-connections && command -v redis-server >/dev/null; then
    port=$(free_port)
    start redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$work" >redis.log
    stopped 'redis-server' "$port" "$pid"
fi
done_rows
