# guest_arm_steady.sh SOURCE BUILD: what an armed recorder does while nothing happens: nearly nothing. Its system calls are counted by
# strace, and no page of an AUX area is in its page tables before a trap: it has read none of it. File: arm-lib.sh.
. ./arm-lib.sh "$@"

# KiB of the AUX areas (mapped read-only) that the recorder has touched. Newer kernels put all pages in as the area is mapped.
touched() { awk '/^[0-9a-f]+-[0-9a-f]+ / {aux = $2 == "r--s" && /perf_event/} aux && /^Rss:/ {n += $2} END {print n + 0}' "/proc/$arm/smaps"; }

syscalls_in() { # SECONDS
    rm -f strace.out
    start strace -f -c -o strace.out -p "$arm" 2>strace.err
    local tracer=$pid
    wait_for 30 grep -q attached strace.err || fail "strace does not attach" strace.err
    sleep "$1"
    kill -INT "$tracer"
    wait_end "$tracer" 30 || fail "strace does not end"
    cat strace.out
    calls=$(awk '$NF == "total" {print $(NF - 1) ~ /^[0-9]+$/ && NF == 5 ? $4 : $(NF - 2)}' strace.out)
    [ -n "$calls" ] || calls=0
}

start sleep 1000
sleeper=$pid
start "$nest" 2000000000
runner=$pid

start_arm --source intel-pt -p "$sleeper" --on 'offcpu>20ms' -o quiet
syscalls_in 3
[ "$calls" -lt 30 ] || fail "$calls system calls in 3 s on a target that sleeps" strace.out
echo "quiet target: $calls system calls in 3 s"
kill -TERM "$arm"
end_of "$arm" 60 "arm on a quiet target"

start_arm --source intel-pt -p "$runner" --ring 256K --on 'offcpu>100s' -o busy
syscalls_in 3
[ "$calls" -lt 30 ] || fail "$calls system calls in 3 s on a target that runs" strace.out
echo "running target: $calls system calls in 3 s"
before=$(touched)
kill -USR2 "$arm"
wait_for 60 test -e busy.1.db || fail "no snapshot" arm.out arm.err
after=$(touched)
echo "AUX areas: $before KiB of 256 KiB touched before the snapshot, $after KiB after it"
[ "$after" -gt 0 ] || fail "no AUX area was read for a snapshot: the measurement is wrong"
case $(uname -r) in
[1-5].* | 6.[0-9].* | 6.1[0-4].*) [ "$before" = 0 ] || fail "$before KiB of the AUX areas were read before a trap" ;;
esac
kill -TERM "$arm"
end_of "$arm" 60 "arm on a running target"
