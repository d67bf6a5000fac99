#!/bin/bash
# A wait that goes on as a snapshot is made: in what state and system call each thread of the target is, though nothing fired of it, and
# though it waited before it was watched.
set -u
. "$SOURCE/tests/cli/lib.sh"
cat >waits.py <<'END2'
import os, threading, time
r, w = os.pipe()
child = os.fork()
if not child:
    os.close(w)
    os.read(r, 1) # until its parent ends
    os._exit(0)
def told(name, what):
    def run():
        os.write(1, f"{name} {threading.get_native_id()}\n".encode())
        what()
    return run
threading.Thread(target=told("clock_nanosleep", lambda: time.sleep(36000))).start()
threading.Thread(target=told("read", lambda: os.read(r, 1))).start()
told("wait4", lambda: os.waitpid(child, 0))()
END2
python3 - 2>/dev/null <<'END2' || { echo "skipped: this user may not read what system call a process is in"; exit 77; }
import os
pid = os.fork()
if not pid:
    os.read(os.pipe()[0], 1)
while open(f"/proc/{pid}/syscall").read().split()[0] != "0":
    pass
os.kill(pid, 9)
END2
start python3 waits.py >threads
target=$pid

waits() { # each in its own call: numbers of x86-64
    [ "$(wc -l <threads)" -eq 3 ] || return 1
    local name tid
    while read -r name tid; do
        case $(cut -d' ' -f1 "/proc/$target/task/$tid/syscall") in
        230) [ "$name" = clock_nanosleep ] ;;
        0) [ "$name" = read ] ;;
        61) [ "$name" = wait4 ] ;;
        *) false ;;
        esac || return 1
    done <threads
}
wait_for 300 waits || fail "the threads do not wait" threads

told() { # OPTION...
    local name tid
    rm -f x.*
    start_arm -p "$target" -o x "$@"
    kill -INT "$arm"
    end_of "$arm" 300 "arm $*"
    [ "$status" -eq 0 ] || fail "arm $* ends with $status" arm.err
    while read -r name tid; do
        sql x.1.db "SELECT detail FROM mark JOIN thread t ON t.id = thread_id WHERE mark.name = 'waiting' AND tid = $tid" >found
        [ "$(cat found)" = "sleeping in $name" ] || fail "arm $*: of the thread that waits in $name is told '$(cat found)'" threads arm.err
    done <threads
}
told --source sample
told --source sample --rings thread
told --source step
[ "$(id -u)" != 0 ] || told --source sample --on 'offcpu>1h'
# One that is stopped is in no system call.
kill -STOP "$target"
stopped() { ! grep -L '^State:[[:space:]]*T' "/proc/$target"/task/*/status | grep -q .; }
wait_for 300 stopped || fail "the target does not stop"
start_arm --source sample -p "$target" -o stopped
kill -INT "$arm"
end_of "$arm" 300 arm
[ "$(sql stopped.1.db "SELECT count(*) || group_concat(DISTINCT detail) FROM mark WHERE name = 'waiting'")" = 3stopped ] || fail "the stop is not told" arm.err
kill -KILL "$target"
exit 0
