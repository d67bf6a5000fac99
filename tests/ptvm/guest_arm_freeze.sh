# guest_arm_freeze.sh SOURCE BUILD TRAPS: a forwarder that stalls again and again is trapped TRAPS times; how many calls of the thread
# that stalled lie after the trigger fired, that is, called bpf_trace_printk, and how many after the end of the stall (those of interrupts,
# which are many where a machine is slow, apart)? With aux_pause (Linux 6.13) at most 200 after the trigger each time; else the table tells
# what it is. File: arm-lib.sh.
traps=$3
. ./arm-lib.sh "$@"
kernel=$(uname -r)
case $kernel in [1-5].* | 6.[0-9].* | 6.1[012].*) in_kernel=0 ;; *) in_kernel=1 ;; esac
ask_doctor env
doctor_says "^intel_pt\.aux_pause $([ $in_kernel = 1 ] && echo yes || echo no) "

mkdir -p "$kept"
export OVER=$kept # databases of traps with more than 200 calls after

cat >each.sh <<'END'
"$STALLTRAP" query "$STALLTRAP_DB" --format csv "WITH stall AS (SELECT s.*, (SELECT min(start_ns) FROM calls p WHERE p.thread_id = s.thread_id
        AND p.function = 'bpf_trace_printk' AND p.start_ns >= s.end_ns) AS fired
        FROM stalls s WHERE s.id = (SELECT value FROM meta WHERE key = 'trigger_stall_id')),
    ring AS (SELECT json_extract(r.value, '\$.in_kernel') AS k, json_extract(r.value, '\$.after_ns') AS ns, json_extract(r.value, '\$.after_bytes') AS bytes
        FROM json_each((SELECT value FROM meta WHERE key = 'ring_stops')) r, stall s WHERE json_extract(r.value, '\$.tid') = s.tid),
    after AS (SELECT c.start_ns >= coalesce(fired, s.end_ns) AS fired FROM calls c, stall s WHERE c.thread_id = s.thread_id AND c.start_ns >= s.end_ns
        AND NOT EXISTS (SELECT 1 FROM calls i WHERE i.thread_id = c.thread_id AND (i.function GLOB 'asm_sysvec_*' OR i.function = 'asm_common_interrupt')
            AND i.start_ns >= s.end_ns AND i.start_ns <= c.start_ns AND i.end_ns >= c.end_ns))
    SELECT (SELECT value FROM meta WHERE key = 'frozen_in_kernel'), (SELECT coalesce(sum(fired), 0) FROM after), (SELECT count(*) FROM after),
    (SELECT count(*) FROM calls c, stall s WHERE c.thread_id = s.thread_id AND c.start_ns < s.start_ns),
    (SELECT value FROM meta WHERE key = 'freeze_done_ns') - (SELECT end_ns FROM stall),
    (SELECT k FROM ring), (SELECT ns FROM ring), (SELECT bytes FROM ring)" | tail -n 1 | tee -a traps.csv
[ "$(tail -n 1 traps.csv | cut -d, -f2)" -le 200 ] || cp "$STALLTRAP_DB" "$OVER/over.$(basename "$STALLTRAP_DB")"
rm -rf "$STALLTRAP_DATA" "$STALLTRAP_DB"
END
start_forwarder --stall lock:30:1000 --load-connections 1 --load-rate 200000
start_arm --source intel-pt -p "$forwarder" --rings thread --ring 64K --on 'offcpu>20ms,state=sleeping' --snapshots "$traps" -o x --then 'bash ./each.sh'
kill -USR1 "$forwarder"
tail -f arm.out --pid "$arm" &
end_of "$arm" 500 "arm"
cat arm.err
[ $status -eq 0 ] || fail "arm ends with $status" arm.out arm.err
[ "$(wc -l <traps.csv)" -eq "$traps" ] || fail "not $traps traps" traps.csv arm.out arm.err
echo "$kernel: above, in the kernel, calls after the trigger, calls after the stall's end, calls before it, ns from the stall's end to the freeze; its ring: stopped in the kernel, ns and bytes after the stall's end"
# For `make bench`: how many traps, how many of them stopped in the kernel, calls after the trigger: median and most, calls after the
# stall's end: median and most, us to the freeze: median, bytes in the ring after the stall's end: most.
nth() { cut -d, -f"$1" traps.csv | sort -n | sed -n "$2p"; }
half=$(((traps + 1) / 2))
echo "freeze: $traps $(grep -c ^1, traps.csv) $(nth 2 $half) $(nth 2 "$traps") $(nth 3 $half) $(nth 3 "$traps") $(($(nth 5 $half) / 1000)) $(nth 8 "$traps")"
# A thread that is still off its CPU when its stall is told of (a slow machine) has nothing that could be stopped; what it does until
# user space has stopped it is told as after the stall. That a ring was stopped in the kernel is then of whoever ran as it was told.
awk -F, '($5 >= 0 && $6 != $1) || $7 == "" || $8 == "" {exit 1}' traps.csv || fail "not every snapshot tells how the ring of the thread that stalled was stopped" traps.csv
ongoing=$(awk -F, '$5 < 0' traps.csv | wc -l)
awk -F, -v in_kernel=$in_kernel -v ongoing="$ongoing" '$1 != in_kernel || ($1 && $2 > 200) || $4 < 100 {bad++} END {exit bad > ongoing}' traps.csv ||
    fail "not every trap stopped as it should ($ongoing told while they went on)" traps.csv
[ "$ongoing" -lt "$traps" ] || fail "every stall was told while it went on: the machine is too slow to tell"
