#!/bin/bash
# parts.sh PROGRAM PID: which parts of stalltrap work here, a line each, for docs/deploy.md's table. PROGRAM is tests/workloads/kinds, which runs as
# process PID in the mode `sleep`, in another mount name space and as another user. What does not work is told on the standard error.
set -u
program=$1 target=$2
work=$(mktemp -d)
chmod 755 "$work"
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT

works() { # PART STATUS
    if [ "$2" = 0 ]; then echo "$1"; else { echo "--- without $1:"; cat out; } >&2; fi
}
some() { # DB CONDITION: there are calls for which it holds
    [ "$(stalltrap query "$1" "SELECT count(*) > 0 FROM calls WHERE $2" --format csv 2>>out | tail -n 1)" = 1 ] || { echo "no calls: $2" >>out; return 1; }
}
moment() { # PREFIX OPTION...
    local prefix=$1
    shift
    timeout 300 stalltrap arm -p "$target" --timeout 4s --at-end snapshot -o "$prefix" "$@" >out 2>&1
}
fires() { # TRIGGER
    timeout 300 stalltrap arm --source sample -p "$target" --on "$1" --timeout 100s --no-decode -o fired >out 2>&1 && grep -q '^trap 1: ' out
    local status=$?
    rm -rf fired.*
    return $status
}

# Decoding is held at its first page of output, which is more than a pipe takes, for as long as we look at who does it.
worker() {
    local pid holder status=1 i
    mkfifo held
    timeout 100 stalltrap decode sample.1.data --dump samples >held 2>out &
    holder=$!
    exec 7<held
    for ((i = 0; i < 600; i++)); do
        pid=$(pgrep_worker) && [ "$(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null)" = "$(id -u stalltrap)" ] && status=0 && break
        kill -0 $holder 2>/dev/null || break
        sleep 0.02
    done
    exec 7<&-
    wait $holder
    return $status
}
pgrep_worker() {
    local folder
    for folder in /proc/[0-9]*; do
        if tr '\0' ' ' 2>/dev/null <"$folder/cmdline" | grep -q '^stalltrap decode-worker'; then basename "$folder" && return; fi
    done
    return 1
}

moment sample --source sample && some sample.1.db "function = 'slow_function'"
works sample $?
[ -e sample.1.db ] && some sample.1.db "kernel AND function NOT GLOB '[[]*'"
works kernel-names $?
[ -e sample.1.data ] && worker
works worker $?
fires 'offcpu>30ms,idle=yes'
works offcpu $?
fires "func:$program!slow_function>30ms"
works func $?
fires 'tracepoint:syscalls:sys_enter_poll,if=nfds==0'
works tracepoint $?
moment step --source step && some step.1.db "function = 'rest'"
works step $?
exit 0
