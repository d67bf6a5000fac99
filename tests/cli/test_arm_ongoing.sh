#!/bin/bash
# What has begun and does not end is told while it goes on, by each way of looking at it: a thread waits in read(2) for a byte that nobody
# writes. Its row has no end, and is at least as long as the threshold and the grace.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: BPF programs need root"; exit 77; }
cat >hang.c <<'END'
#include <unistd.h>

__attribute__((noinline)) void wait_here(void)
{
    char c;

    while (read(0, &c, 1) < 0)
        ;
    __asm__ volatile("" ::: "memory");
}
int main(void)
{
    while (access("go-on", F_OK)) /* it is watched by then */
        usleep(1000);
    wait_here();
    return 0;
}
END
cc -O1 -rdynamic -o hang hang.c || fail "no compiler"

told() { # TRIGGER CONDITION
    rm -rf x.* go go-on
    mkfifo go
    exec 8<>go
    start bash -c "exec ./hang <go"
    local target=$pid
    start_arm --source sample -p "$target" --on "$1" -o x
    touch go-on
    end_of "$arm" 120 "arm --on $1"
    running "$target" || fail "$1: the target has ended"
    kill -KILL "$target"
    wait "$target" 2>/dev/null
    exec 8>&-
    [ "$status" = 0 ] || fail "arm --on $1 ends with $status" arm.out arm.err
    sql x.1.db "SELECT count(*) FROM stalls s JOIN meta m ON m.key = 'trigger_stall_id' AND m.value = s.id
        WHERE end_ns IS NULL AND tid = $target AND duration_ns >= 70000000 AND $2" >found
    [ "$(cat found)" = 1 ] || { "$STALLTRAP" query x.1.db 'SELECT * FROM stalls' >found; fail "$1: not told as what goes on" arm.out found; }
    echo "$(grep '^trap 1' arm.out)"
}

told 'syscall:read>30ms' "kind = 'syscall' AND syscall = 'read'"
told "func:$work/hang!wait_here>30ms" "kind = 'func'"
told 'offcpu>30ms,state=sleeping' "kind = 'offcpu' AND syscall = 'read' AND state = 'sleeping'"
