# guest_patching.sh SECONDS: for so long, and ten times at least, the kernel patches its own code (tracepoints on and off) while both
# CPUs run it. An emulator that keeps a translation of a breakpoint long removed makes the kernel panic or hang within seconds.
cd /sys/kernel/tracing || exit
busy() { while :; do perf bench sched pipe -l 20000 >/dev/null 2>&1; done; }
busy &
one=$!
busy &
two=$!
end=$((SECONDS + $1))
times=0
while [ $SECONDS -lt $end ] || [ $times -lt 10 ]; do
    echo 1 >events/sched/enable
    echo 0 >events/sched/enable
    times=$((times + 1))
done
kill $one $two
echo "patched $times times"
