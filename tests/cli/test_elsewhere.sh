#!/bin/bash
# Programs whose code is where one does not look: in another mount name space, of another C library, without symbols but with a file of them
# elsewhere. Their functions have their names in what each source records, and triggers find them.
set -u
. "$SOURCE/tests/cli/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: BPF programs and name spaces of mounts need root"; exit 77; }
command -v musl-gcc >/dev/null || { echo "skipped: no musl-gcc (musl-tools)"; exit 77; }
cat >own.c <<'END'
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
static volatile unsigned long sum;
__attribute__((noinline)) static int leaf(int i) { sum += i; return i; }
__attribute__((noinline)) int wait_here(int ms) { poll(0, 0, ms); return leaf(ms); }
int main(int n, char **v)
{
    int times = n > 1 ? atoi(v[1]) : 5;
    for (int i = 0; i < times; i++) { leaf(i); wait_here(n > 2 ? atoi(v[2]) : 0); }
    return 0;
}
END
flags=(-g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls)

# told NAME DB: each call of these functions is there, under its name
told() {
    [ "$(sql "$2" "SELECT count(*) FROM calls WHERE function = 'leaf'")" = 10 ] || fail "$1: leaf() was called 10 times, not $(sql "$2" "SELECT count(*) FROM calls WHERE function = 'leaf'")"
    [ "$(sql "$2" "SELECT count(*) FROM calls c JOIN calls p ON p.id = c.parent_id WHERE c.function = 'leaf' AND p.function = 'wait_here'")" = 5 ] || fail "$1: wait_here() has not its calls of leaf()"
}
# stalls NAME PID: a wait of 100 ms in wait_here() is told with that function
stalls() {
    "$STALLTRAP" arm --source sample -p "$2" --on 'offcpu>30ms,idle=yes' --warm-up 200ms --timeout 100s -o "$1" >arm.out 2>arm.err || fail "$1: arm ends with $?" arm.out arm.err
    "$STALLTRAP" report "$1.1.db" >report 2>&1 || fail "$1: report ends with $?" report
    grep -q '^  in  .*wait_here < main' report || fail "$1: report does not say wait_here()" report arm.out
    [ "$(sql "$1.1.db" "SELECT count(*) > 0 FROM calls WHERE function = 'wait_here'")" = 1 ] || fail "$1: no call of wait_here()"
}
in_function() { # NAME PID PROGRAM
    "$STALLTRAP" arm --source sample -p "$2" --on "func:$3!wait_here>30ms" --timeout 100s --no-decode -o "$1-func" >arm.out 2>arm.err || fail "$1: arm --on func: ends with $?" arm.out arm.err
    grep -q "^trap 1: .* ms in the function (returned 100)" arm.out || fail "$1: func: has not fired" arm.out
}

# The same C library, and another one, with which everything is linked anew.
for cc in cc 'musl-gcc' 'musl-gcc -static'; do
    name=$(tr -d ' -' <<<"$cc")
    $cc "${flags[@]}" own.c -o "$name" || fail "$cc"
    "$STALLTRAP" arm --source step -q -o "$name-step" -- "./$name" >out 2>err || fail "$cc: arm --source step ends with $?" err
    told "$cc" "$name-step.1.db"
    start "./$name" 100000 100
    stalls "$name" "$pid"
    in_function "$name" "$pid" "$PWD/$name"
done

# In a mount name space that alone has the file.
mkdir only
start unshare --mount bash -c 'mount -t tmpfs tmpfs only && cp cc only/hidden && exec only/hidden 100000 100'
wait_for 60 grep -qx hidden "/proc/$pid/comm" || fail "no program in another name space"
[ ! -e only/hidden ] || fail "its file is here too"
stalls hidden "$pid"
told_name() { sed -n 's/^[^/]*\(\/.*\/only\/hidden\)$/\1/p' "/proc/$pid/maps" | head -n 1; }
in_function hidden "$pid" "$(told_name)"
"$STALLTRAP" arm --source step -p "$pid" --timeout 1s --at-end snapshot -o hidden-step >out 2>err || fail "arm --source step in another name space ends with $?" err
[ "$(sql hidden-step.1.db "SELECT count(*) > 0 FROM calls WHERE function = 'leaf'")" = 1 ] || fail "step: no call of leaf() of a program in another name space"

# The same below a root of its own (chroot): the name that the kernel tells us leads nowhere from there.
mkdir root
start unshare --mount bash -c 'mount --rbind / root && exec chroot root bash -c "cd \"\$1\" && exec unshare --mount bash -c \"mount -t tmpfs tmpfs only &&
    cp cc only/hidden && exec only/hidden 100000 100\"" _ "$1"' _ "$PWD"
wait_for 60 grep -qx hidden "/proc/$pid/comm" || fail "no program below another root"
[ -n "$(told_name)" ] && [ ! -e "/proc/$pid/root$(told_name)" ] || fail "its name leads somewhere: $(told_name)"
in_function chroot "$pid" "$(told_name)"

# Without symbols, with a file of them beside it, found by its name; then where distributions keep them, found by the build id.
objcopy --only-keep-debug cc apart.debug && objcopy --strip-all --add-gnu-debuglink=apart.debug cc apart || fail "objcopy"
! nm apart 2>/dev/null | grep -q leaf || fail "it has symbols"
"$STALLTRAP" arm --source step -q -o apart -- ./apart >out 2>err || fail "arm ends with $?" err
told "a file of symbols beside the program" apart.1.db
[ -d /usr/lib/debug ] || { echo "no /usr/lib/debug here: symbols there are not tried"; exit 0; }
objcopy --strip-all cc bare
id=$(readelf -n bare | sed -n 's/.*Build ID: //p')
[ -n "$id" ] || fail "no build id"
unshare --mount bash -c '
    set -e
    mount -t tmpfs tmpfs /usr/lib/debug
    mkdir -p "/usr/lib/debug/.build-id/${2:0:2}"
    cp apart.debug "/usr/lib/debug/.build-id/${2:0:2}/${2:2}.debug"
    exec "$1" arm --source step -q -o bare -- ./bare' _ "$STALLTRAP" "$id" >out 2>err || fail "arm ends with $?" err
told "a file of symbols in /usr/lib/debug" bare.1.db
exit 0
