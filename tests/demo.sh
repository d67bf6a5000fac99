#!/bin/bash
# The main job on real input: a forwarder under load that stalls 40 ms for a lock now and then; arm a trigger, wait, look.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
stalltrap=${STALLTRAP:-$build/stalltrap}
out=${DEMO_DIR:-$build/demo}
export LC_ALL=C.UTF-8

if [ "$(id -u)" != 0 ]; then
    echo "The demo arms a BPF trigger, which needs root (or CAP_BPF and CAP_PERFMON): sudo make demo" >&2
    exit 3
fi
rm -rf "$out"
mkdir -p "$out"

# The forwarder and arm each run before other work on the machine, so that it is the lock that stalls the forwarder. A session has a
# weight of its own for the scheduler (autogroups), a process one within it.
first() { # COMMAND...
    exec setsid bash -c '[ ! -w /proc/self/autogroup ] || echo -15 >/proc/self/autogroup; renice -n -15 -p $$ >/dev/null; exec "$@"' first "$@"
}
say() { printf '\n$ %s\n' "$*"; }

say "forwarder --listen 127.0.0.1:0 --self-load --stall lock:40:1000 &      # a stall of 40 ms every second"
first "$build/tests/workloads/forwarder" --listen 127.0.0.1:0 --self-load --load-connections 4 --load-rate 2000000 \
    --wait-usr1 --stall lock:40:1000 --log "$out/forwarder.log" &
forwarder=$!
arm=
cleanup() {
    kill $forwarder $arm 2>/dev/null || true
    wait 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 1' INT TERM
for _ in $(seq 100); do
    grep -q '^open ' "$out/forwarder.log" 2>/dev/null && break
    sleep 0.1
done

say "stalltrap arm --source step -p $forwarder --on 'offcpu>20ms' -o $out/stalltrap"
mkfifo "$out/ready"
first "$stalltrap" arm --source step -p $forwarder --on 'offcpu>20ms' --timeout 60s -o "$out/stalltrap" --ready-fd 9 9>"$out/ready" &
arm=$!
read -r _ <"$out/ready" || true
rm -f "$out/ready"
kill -USR1 $forwarder # the stalls may begin
wait $arm

say "stalltrap report $out/stalltrap.1.db"
"$stalltrap" report "$out/stalltrap.1.db"

say "stalltrap view $out/stalltrap.1.db"
"$stalltrap" view "$out/stalltrap.1.db" --size 110x26 --screen -

cat <<END

The trace database is $out/stalltrap.1.db. Open it:
    $stalltrap view $out/stalltrap.1.db
    $stalltrap query $out/stalltrap.1.db 'SELECT function, calls, duration(self_ns) FROM functions ORDER BY self_ns DESC LIMIT 10'
    perf script --itrace=cr -i $out/stalltrap.1.data
END
