#!/bin/bash
# Questions that people bring to the triggers: a busy event loop, a function before and after a setting changes and a trap on its tail,
# the longest time a pinned thread was off its CPU and which thread of the kernel took that. Needs root: BPF programs are loaded.
set -u
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"

# stalls TRIGGER [NUMBER]: arms the target and puts so many stalls (2) into x.1.db, x.2.db and so on
stalls() {
    try_stalls "$@" || fail "$1 fires less than $number times" arm.out arm.err
}

# The same; false: they were fewer
try_stalls() {
    number=${2:-2}
    rm -rf x.*
    "$STALLTRAP" arm --source sample -p "$target" --on "$1" --warm-up 300ms --snapshots "$number" --timeout 20s -o x >arm.out 2>arm.err &&
        [ -s "x.$number.db" ]
}

# The system call that a busy thread was in, or, of a stall that has ended, the longest it made
call="coalesce(syscall, (SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = 'longest_syscall'))"

# fired SQL: of the stalls that fired, one line each
fired() {
    local i
    for i in $(seq "$number"); do
        sql x.$i.db "SELECT $1 AS found FROM stall WHERE id = (SELECT value FROM meta WHERE key = 'trigger_stall_id')"
    done
}

end_target() {
    kill -TERM "$target"
    wait_end "$target" 10 || kill -KILL "$target"
    rm -f forwarder.log
}

echo "-- a busy forwarder waits for work, and that is no stall"
start_forwarder --load-connections 2 --load-rate 2000000
target=$forwarder
for try in 1 2 3 4; do # where other work takes its CPU it is away from its loop too
    "$STALLTRAP" arm --source sample -p "$target" --on 'offcpu>20ms,state=sleeping' --on 'busy>20ms' --timeout 1s --no-decode -o none >arm.out 2>arm.err
    status=$?
    [ $status -ne 4 ] || break
done
[ $status -eq 4 ] || fail "it fires each time" arm.out
[ "$(sed -n 's/^busy>.*: \([0-9,]*\) measured$/\1/p' arm.err | tr -d ,)" -ge 50 ] || fail "its loop was not measured" arm.err
end_target

echo "-- but computing, a slow call and a log that nobody reads between two waits are"
start_forwarder --stall busy:40:100 --load-connections 2 --load-rate 1000000
target=$forwarder
kill -USR1 "$target"
stalls 'busy>20ms'
fired "duration_ns >= 20000000 AND coalesce(syscall, '') NOT IN ('fsync', 'epoll_wait') AND NOT EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = stall.id
    AND key = 'in_syscalls_ns' AND value > duration_ns / 2)" >out
[ "$(sort -u out)" = 1 ] || fail "computing: not what took so long" out arm.out
end_target
start_forwarder --stall fsync:60:100 --load-connections 2 --load-rate 1000000
target=$forwarder
kill -USR1 "$target"
stalls 'busy>20ms'
fired "$call" >out
grep -qx fsync out || fail "fsync: not what took so long" out arm.out
end_target
mkfifo log
start python3 -c '
import fcntl, time
log = open("log", "rb", buffering=0)
fcntl.fcntl(log, 1031, 4096)  # F_SETPIPE_SZ
while log.read(4096):
    time.sleep(1)'
start "$programs/forwarder" --listen 127.0.0.1:0 --self-load --stall busy:1:2 --stderr --log forwarder.log --load-connections 4 --load-rate 8000000 2>log
target=$pid
wait_for 10 at_least 50 '^stall ' forwarder.log || fail "no log" forwarder.log
stalls 'busy>20ms'
fired "$call" >out
grep -qx write out || fail "the log: not what took so long" out arm.out
end_target

echo "-- sendfile before and after the socket's buffer grows, and a trap on its tail"
cat >sendfile.py <<'PY'
import os, signal, socket, time
server = socket.create_server(("127.0.0.1", 0))
if not os.fork():
    reader = socket.create_connection(server.getsockname())
    while reader.recv(16384):
        time.sleep(0.003)
    os._exit(0)
sender = server.accept()[0]
sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
def grow(*_):
    sender.setsockopt(socket.SOL_SOCKET, 32, 4 << 20)  # SO_SNDBUFFORCE
signal.signal(signal.SIGUSR1, grow)
with open("data", "w+b") as data, open("sent", "w", buffering=1) as log:
    data.truncate(131072)
    while True:
        start = time.monotonic_ns()
        os.sendfile(sender.fileno(), data.fileno(), 0, 131072)
        print((time.monotonic_ns() - start) // 1000, file=log)
        time.sleep(0.08)
PY
start python3 sendfile.py
target=$pid
function=libc!sendfile64
"$STALLTRAP" doctor | grep -q '^yes *kernel functions as triggers' && function=kernel!__x64_sys_sendfile64
sleep 0.5 # it has filled the buffers of both ends

# percentile NAME: of sendfile, for a second and a half, in microseconds
percentile() {
    "$STALLTRAP" watch -p "$target" --on "func:$function>1ms" --json --timeout 1500ms >watch.json 2>watch.err || fail "watch" watch.err
    jq -e '.triggers[0].count >= 5' watch.json >/dev/null || fail "sendfile was seen less than 5 times" watch.json
    jq ".triggers[0].$1 / 1000 | floor" watch.json
}
before=$(percentile p50_ns)
truth=$(tail -n +3 sent | sort -n | awk '{ took[NR] = $1 } END { print took[int((NR + 1) / 2)] }')
echo "func:$function: median $before us, by the program's own log $truth us"
awk -v a="$before" -v b="$truth" 'BEGIN { exit !(a < 1.3 * b && b < 1.3 * a) }' || fail "a median of $before us, where the program's own is $truth us" sent
limit=$((truth - truth / 100))
stalls "func:$function>${limit}us"
fired "kind = 'func' AND duration_ns >= 1000 * $limit" >out
[ "$(sort -u out)" = 1 ] || fail "the trap on sendfile's tail" out arm.out
fired "kind = 'func' AND end_ns IS NOT NULL" >out # on a busy machine one may still go on
grep -qx 1 out || fail "none of sendfile's tail has an end" out arm.out
# What it returned is how much it sent; the kernel's function has its arguments in a structure.
fired "(SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = 'ret')" >out
awk 'NF && ($1 <= 0 || $1 > 131072) { bad = 1 } NF { n++ } END { exit bad || !n }' out || fail "what sendfile returned" out
kill -USR1 "$target"
sleep 1
after=$(percentile p50_ns)
echo "func:$function: median $before us, with a larger buffer $after us"
[ $((after * 3)) -lt "$before" ] || fail "a larger buffer makes sendfile no faster: $before us, then $after us"
end_target

echo "-- the longest time off the CPU of a pinned thread, and which thread of the kernel took it"
if [ "$(nproc)" -gt 1 ] && [ -e /sys/class/net/lo/queues/rx-0/rps_cpus ]; then
    start "$programs/causes" packets
    target=$pid
    disown "$target" # bash then says nothing when it is killed
    wait_for 10 grep -qx causes "/proc/$target/comm" || fail "causes packets does not run"
    sleep 0.5
    : >kernel
    for try in 1 2 3; do # other threads of the kernel take it too, and may do so for longest at the beginning
        try_stalls 'offcpu>worst,state=preempted' || continue
        fired "duration_ns || ' ' || threshold_ns" >out
        awk '$1 <= $2 || $1 <= last { bad = 1 } { last = $1 } END { exit bad || NR < 2 }' out || fail "not the longest so far" out arm.out
        for i in 1 2; do
            sql x.$i.db "SELECT n.value FROM stall l JOIN stall_attr n ON n.stall_id = l.id AND n.key = 'next'
                JOIN stall_attr k ON k.stall_id = l.id AND k.key = 'next_kernel' AND k.value = 1"
        done >>kernel
        ! grep -q ksoftirqd/1 kernel || break
    done
    [ -s kernel ] || fail "no thread of the kernel took its CPU" arm.out
    sed 's/[^0-9]*\([0-9]*\) .*/\1/' kernel | sort -u | while read -r tid; do # /proc says the same of those that still live
        [ ! -e "/proc/$tid/status" ] || [ -z "$(cat "/proc/$tid/cmdline")" ] || echo "$tid is no thread of the kernel"
    done >wrong
    [ ! -s wrong ] || fail "who took its CPU" wrong kernel
    grep '^trap' arm.out
    children=$(pgrep -P "$target")
    kill -KILL "$target" $children
else
    echo "this machine hands no packets to another processor: not tried"
fi
exit 0
