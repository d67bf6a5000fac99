# guest_limits.sh BUILD: what the limits of perf events forbid a user without privilege, arm says with exit 3 and in doctor's words: Debian's
# perf_event_paranoid 3, and no locked memory for a ring.
set +e
cd /tmp && mkdir -m 777 own && cp "$1/stalltrap" program && chmod 755 program || exit 1
status=0
as() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all "$@"; }

refused() { # WHAT KEY: the words that arm has are those of the finding, behind what it is
    as ./program doctor --json >json
    as ./program arm --source sample -o own/s --timeout 1s -- sleep 2 >out 2>err
    [ $? = 3 ] || { echo "FAILED: $1: not exit 3"; cat err; status=1; }
    cat err
    python3 - "$2" <<'PYTHON' || { echo "FAILED: $1: doctor does not say that"; cat json; status=1; }
import json, sys
said = open("err").read().removeprefix("stalltrap arm: ").strip()
found = [f for f in json.load(open("json"))["findings"] if f["key"] == sys.argv[1] and f["verdict"] == "no"]
sys.exit(not any((f["detail"] + ("\n  " + f["advice"] if f["advice"] else "")).endswith(said) for f in found))
PYTHON
}

echo 3 >/proc/sys/kernel/perf_event_paranoid
refused "perf_event_paranoid 3" source.sample
echo 2 >/proc/sys/kernel/perf_event_paranoid
as ./program arm --source sample -o own/s --timeout 1s -- sleep 2 >out 2>err
case $? in 0 | 4) ;; *) echo "FAILED: with perf_event_paranoid 2 it records"; cat err; status=1 ;; esac
echo 0 >/proc/sys/kernel/perf_event_mlock_kb
ulimit -l 0
refused "no locked memory" perf.ring
exit $status
