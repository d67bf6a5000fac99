#!/bin/bash
# What rings of threads may take together, with a thousand threads: no more than was said, who has none is told, and is a gap, not a hole.
set -u
. "$SOURCE/tests/cli/lib.sh"
cat >many.c <<'END2'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int gate[2];

static void *waits(void *unused)
{
    char c;

    printf("%ld\n", syscall(SYS_gettid));
    fflush(stdout);
    while (read(gate[0], &c, 1) < 0)
        ;
    return unused;
}

/* A number of threads for each line that is read; they wait. */
int main(void)
{
    pthread_attr_t small;
    pthread_t thread;
    char line[32];

    if (pipe(gate) || pthread_attr_init(&small) || pthread_attr_setstacksize(&small, 65536))
        return 1;
    while (fgets(line, sizeof(line), stdin))
        for (int n = atoi(line); n > 0; n--)
            if (pthread_create(&thread, &small, waits, NULL))
                return 2;
    return 0;
}
END2
cc -O1 -pthread -o many many.c || fail "no compiler"

begin() { # THREADS: the target with so many besides the first, waiting; its pid is $target
    rm -rf x.* go
    mkfifo go
    start bash -c 'exec ./many <go >tids'
    target=$pid
    exec 8>go
    more "$1" "$1"
}
more() { # N ALL
    echo "$1" >&8
    wait_for 600 has_written "$2" || fail "$(wc -l <tids) threads of $2"
}
has_written() { [ "$(wc -l <tids)" -ge "$1" ]; }
finish() {
    kill -INT "$arm"
    end_of "$arm" 600 arm
    [ "$status" -eq 0 ] || fail "arm ends with $status" arm.err
    exec 8>&-
    kill -KILL "$target"
    sql x.1.db "SELECT tid FROM gaps g JOIN thread t ON t.id = g.thread_id WHERE reason = 'no ring'" | sort >gaps
    [ "$(sort -u gaps | wc -l)" -eq "$(wc -l <gaps)" ] || fail "a thread without a ring is told twice" gaps
}
rings() { # that are in the snapshot, of samples
    strings -n 8 x.1.data | grep -c '^ring\.[0-9]*=tid='
}

# At arming: 1,001 threads and room for 64 rings of 64 KiB. Nobody runs: the others have none.
begin 1000
start_arm --source sample --rings thread --ring 64K --ring-total 4M -o x -p "$target"
grep -q '^armed: .* 64 KiB a thread, 64 threads (4 MiB in all at most, 937 threads have none)' arm.err || fail "the armed line" arm.err
[ "$(grep -c 'has no ring' arm.err)" -eq 1 ] || fail "it is not told once" arm.err
finish
grep -q '^937 threads had no ring, .* 4 MiB (--ring-total)' arm.err || fail "it is not told at the end" arm.err
[ "$(rings)" -eq 64 ] || fail "$(rings) rings where 64 may be" arm.err
[ "$(wc -l <gaps)" -eq 937 ] || fail "$(wc -l <gaps) gaps of 937 threads" arm.err

# A size that was not asked for becomes smaller before anyone goes without: 1,001 rings of 128 KiB.
begin 1000
start_arm --source sample --rings thread --ring-total 126M -o x -p "$target"
grep -q '^armed: .* 128 KiB a thread, 1001 threads (126 MiB in all at most)' arm.err || fail "the rings are not made smaller" arm.err
finish
[ ! -s gaps ] || fail "gaps where all have a ring" gaps

# Born while it records: three have rings. Of them two stand still from then on, and the first thread makes another now and then. The ring
# of one of the two goes as soon as that was idle for a second; until then the new ones have none.
begin 2
start_arm --source sample --rings thread --ring 64K --ring-total 192K --every-switch --verbose -o x -p "$target"
grep -q '^armed: .* 64 KiB a thread, 3 threads (192 KiB in all at most)' arm.err || fail "three rings" arm.err
all=2
for _ in $(seq 300); do
    all=$((all + 1))
    more 1 $all
    wait_for 2 grep -q 'has no ring any more, as it was idle for longest' arm.err && break
done
finish
[ "$(rings)" -eq 3 ] || fail "$(rings) rings where three may be" arm.err
[ "$(wc -l <gaps)" -eq $((all - 2)) ] || fail "$(wc -l <gaps) gaps of $((all - 2)) threads without a ring" gaps arm.err
sql x.1.db "SELECT tid FROM gaps g JOIN thread t ON t.id = g.thread_id WHERE detail LIKE 'its ring went%'" >went
[ "$(wc -l <went)" -eq 1 ] || fail "not one ring went" went arm.err
head -2 tids | grep -qxf went || fail "the ring of a thread went that was not idle for longest" went tids arm.err
exit 0
