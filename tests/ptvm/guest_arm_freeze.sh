# guest_arm_freeze.sh SOURCE BUILD TRAPS: a forwarder that stalls again and again is trapped TRAPS times; how many calls of the thread
# that stalled lie after the end of the stall (those of interrupts, which are many where a machine is slow, apart)? With aux_pause (Linux 6.13) at most 200 each time; else the table tells what it is.
# File: arm-lib.sh.
traps=$3
. ./arm-lib.sh "$@"
kernel=$(uname -r)
case $kernel in [1-5].* | 6.[0-9].* | 6.1[012].*) in_kernel=0 ;; *) in_kernel=1 ;; esac

cat >each.sh <<'END'
stall="(SELECT value FROM meta WHERE key = 'trigger_stall_id')"
"$STALLTRAP" query "$STALLTRAP_DB" --format csv "SELECT (SELECT value FROM meta WHERE key = 'frozen_in_kernel'),
    (SELECT count(*) FROM calls, stalls s WHERE s.id = $stall AND calls.thread_id = s.thread_id AND calls.start_ns >= s.end_ns
        AND NOT EXISTS (SELECT 1 FROM calls i WHERE i.thread_id = calls.thread_id AND i.function GLOB 'asm_sysvec_*'
            AND i.start_ns >= s.end_ns AND i.start_ns <= calls.start_ns AND i.end_ns >= calls.end_ns)),
    (SELECT count(*) FROM calls, stalls s WHERE s.id = $stall AND calls.thread_id = s.thread_id AND calls.start_ns < s.start_ns),
    (SELECT value FROM meta WHERE key = 'freeze_done_ns') -
        (SELECT end_ns FROM stalls WHERE id = $stall)" | tail -n 1 | tee -a traps.csv
tail -n 1 traps.csv | grep -qE '^1,([0-9]{1,2}|1[0-9]{2}|200),' || "$STALLTRAP" query "$STALLTRAP_DB" --format csv "SELECT calls.start_ns - s.end_ns, depth, function, calls.duration_ns, flags
    FROM calls, stalls s WHERE s.id = $stall AND calls.thread_id = s.thread_id AND calls.end_ns >= s.end_ns ORDER BY calls.id" >>over.txt
rm -rf "$STALLTRAP_DATA" "$STALLTRAP_DB"
END
start_forwarder --stall lock:30:1000 --load-connections 1 --load-rate 200000
start_arm --source intel-pt -p "$forwarder" --rings thread --ring 64K --on 'offcpu>20ms,state=sleeping' --snapshots "$traps" -o x --then 'bash ./each.sh'
kill -USR1 "$forwarder"
tail -f arm.out --pid "$arm" &
end_of "$arm" 500 "arm"
cat arm.err
cat over.txt
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
[ "$(wc -l <traps.csv)" -eq "$traps" ] || fail "not $traps traps" traps.csv arm.out arm.err
echo "$kernel: above, in the kernel, calls after, calls before, ns from the stall's end to the freeze"
# For `make bench`: how many traps, how many of them stopped in the kernel, calls after: median and most, us to the freeze: median.
nth() { sort -n | sed -n "$1p"; }
echo "freeze: $traps $(grep -c ^1, traps.csv) $(cut -d, -f2 traps.csv | nth $(((traps + 1) / 2))) $(cut -d, -f2 traps.csv | nth "$traps") $(($(cut -d, -f4 traps.csv | nth $(((traps + 1) / 2))) / 1000))"
# A thread that is still off its CPU when its stall is told of (a slow machine) has nothing that could be stopped; what it does until
# user space has stopped it is told as after the stall.
ongoing=$(grep -c ' so far in ' arm.out)
awk -F, -v in_kernel=$in_kernel -v ongoing="$ongoing" '$1 != in_kernel || ($1 && $2 > 200) || $3 < 100 {bad++} END {exit bad > ongoing}' traps.csv ||
    fail "not every trap stopped as it should ($ongoing told while they went on)" traps.csv
[ "$ongoing" -lt "$traps" ] || fail "every stall was told while it went on: the machine is too slow to tell"
