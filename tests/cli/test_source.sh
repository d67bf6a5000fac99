#!/bin/bash
# Source lines of functions: from the program's own debug information, from a separate file, of none, and of damaged ones.
set -u
. "$SOURCE/tests/cli/lib.sh"

cat >known.c <<'END'
#include <stdio.h>

__attribute__((noinline)) static int
inner(int n)
{
    return n * 3 + 1;
}

__attribute__((noinline)) int outer(int n)
{
    return inner(n) + inner(n + 1);
}
#line 700 "made/elsewhere.y"
__attribute__((noinline)) int other(int n) { return n ^ 5; }
#line 800 "known.c"
int main(int argc, char **argv)
{
    printf("%d\n", outer(argc) + other(argc));
    return argv == 0;
}
END
cc -g -O1 -fno-ipa-cp -static-pie -o known known.c 2>cc.err || cc -g -O1 -fno-ipa-cp -o known known.c || fail "cc" cc.err

lines() { # DB: the lines of the program's functions
    sql "$1" "SELECT s.name, replace(o.file, '$work/', ''), o.line FROM source o JOIN symbol s ON s.id = o.symbol_id
              WHERE s.name IN ('inner', 'outer', 'other', 'main') ORDER BY 3"
}
known='inner,known.c,5
outer,known.c,10
other,made/elsewhere.y,700
main,known.c,801'

"$STALLTRAP" arm --source step --no-decode -o x -- ./known >out 2>&1 || fail "arm ends with $?" out
"$STALLTRAP" decode x.1.data -o own.db >out 2>&1 || fail "decode ends with $?" out
[ "$(lines own.db)" = "$known" ] || { lines own.db >lines; fail "other lines from the program" lines; }
[ "$(sql own.db "SELECT DISTINCT source FROM calls WHERE function = 'outer'")" = "$work/known.c:10" ] || fail "calls.source"
[ "$(sql own.db "SELECT source FROM functions WHERE function = 'outer'")" = "$work/known.c:10" ] || fail "functions.source"
"$STALLTRAP" view own.db --keys '/outer<Enter>i' --size 100x40 --screen - | grep -q "^source  *$work/known.c:10 *$" || fail "the details have no source line"
"$STALLTRAP" decode --bare x.1.data -o bare.db >out 2>&1 || fail "decode --bare ends with $?" out
[ "$(sql bare.db 'SELECT count(*) FROM source')" = 0 ] || fail "a bare database has source lines"

# The same code: its debug information stands in a file beside it, is damaged, is gone.
mkdir .debug
objcopy --only-keep-debug known .debug/known.debug || fail "objcopy"
cp known whole
strip known && objcopy --add-gnu-debuglink=.debug/known.debug known || fail "strip"
"$STALLTRAP" decode x.1.data -o linked.db >out 2>&1 || fail "decode with a debug file ends with $?" out
[ "$(lines linked.db)" = "$known" ] || { lines linked.db >lines; fail "other lines from the debug file" lines; }
objcopy --remove-section=.debug_line .debug/known.debug cut.debug 2>/dev/null && cp cut.debug .debug/known.debug
"$STALLTRAP" decode x.1.data -o cut.db >out 2>&1 || fail "decode with half of the debug information ends with $?" out
[ "$(lines cut.db)" = "" ] || fail "lines from nowhere"
rm -r .debug
"$STALLTRAP" decode x.1.data -o none.db >out 2>&1 || fail "decode without debug information ends with $?" out
[ "$(lines none.db)" = "" ] || fail "lines from nowhere"
for table in call source; do
    [ "$(sql own.db "SELECT count(*) FROM $table")" -gt 0 ] || fail "no $table"
done
# Random damage in the line tables is never fatal.
offset=$((16#$(readelf -SW whole | sed -n 's/.* \.debug_line  *PROGBITS  *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')))
for i in 1 2 3 4 5 6 7 8; do
    cp whole known
    python3 -c "import random, sys; sys.stdout.buffer.write(random.Random($i).randbytes(12))" | dd of=known bs=1 seek=$((offset + i * 5)) conv=notrunc 2>/dev/null
    timeout 600 "$STALLTRAP" decode --force x.1.data -o damaged.db >out 2>&1 || fail "decode with damaged lines ends with $?" out
done

# Where a wait was: the frames of the stall's user stack have lines, and what the compiler inlined is a level of its own.
cat >waits.c <<'END'
#include <time.h>

static inline __attribute__((always_inline)) void
nap(void)
{
    struct timespec t = {.tv_nsec = 40000000};
    long rc;

    __asm__ volatile("syscall" : "=a"(rc) : "0"(35), "D"(&t), "S"(0) : "rcx", "r11", "memory");
}

__attribute__((noinline)) int waits(volatile int *n)
{
    nap();
    return ++*n;
}

int main(void)
{
    volatile int n = 0;
    return waits(&n) != 1;
}
END
cc -g -O2 -fno-omit-frame-pointer -o waits waits.c 2>cc.err || fail "cc" cc.err
"$STALLTRAP" arm --source step --no-decode -o w --on 'offcpu>20ms,idle=yes,state=sleeping' -- ./waits >out 2>&1 || fail "arm ends with $?" out
"$STALLTRAP" decode w.1.data -o waits.db >out 2>&1 || fail "decode ends with $?" out
sql waits.db "SELECT s.name, k.level, coalesce(k.function, '-'), replace(k.file, '$work/', ''), k.line FROM stack_line k
              JOIN stack f ON f.id = k.stack_id AND f.depth = k.depth JOIN symbol s ON s.id = f.symbol_id
              JOIN stall l ON l.user_stack_id = k.stack_id AND l.fired WHERE s.name IN ('waits', 'main') ORDER BY k.depth, k.level" >lines
cat >expected <<'END'
waits,0,nap,waits.c,9
waits,1,-,waits.c,14
main,0,-,waits.c,21
END
diff expected lines >differences || fail "other lines of the stack" differences
