#!/bin/bash
# One line a figure: NAME VALUE UNIT vs WHAT. What is compared runs in turns in one run; the ratios are medians of the rounds.
# Exit 1 when a figure could not be measured or misses its goal, which its line names.
# usage: run.sh [step_rate|trigger_cost|python|decode_speed|trace|rings|viewer|sample_cost|watch_cost|server_cost|catch|freeze]...   BUILD is the build folder;
# TRACE_DATA a perf.data with Intel PT and TRACE_IDS the build-id folder of its code: without it, `trace` is left out
set -uo pipefail
BUILD=$(realpath "${BUILD:-build}")
SOURCE=$(realpath "$(dirname "$0")/../..")
STALLTRAP=$BUILD/stalltrap
export BUILD SOURCE STALLTRAP
# shellcheck source=tests/cli/lib.sh
. "$SOURCE/tests/cli/lib.sh"
go_first "$@"
rounds=5

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# The milliseconds that COMMAND takes, on stdout; its own output is thrown away.
timed() { # COMMAND...
    local begin
    begin=$(now_ms)
    "$@" >/dev/null || return 1
    echo $(($(now_ms) - begin))
}

# /usr/bin/python3 from its first to its last instruction: about 20 million. Stepped once for the figures that need it.
python_snapshot() {
    [ ! -e python.1.data ] || return 0
    local begin
    begin=$(now_ms)
    env -i PATH="$PATH" LC_ALL=C "$STALLTRAP" arm --quiet --source step --ring 256M --no-decode -o python -- \
        /usr/bin/python3 -I -S -c 'print(1)' >arm.out || return 1
    grep -qx 1 arm.out || { echo "python3 did not print 1" >&2; return 1; }
    step_ms=$(($(now_ms) - begin))
}

figure_step_rate() {
    "$BUILD/tests/bench/step_rate"
}

figure_trigger_cost() {
    sed "s/^/# /" "$SOURCE"/tests/bench/*.bt >&2 # what it is compared with
    "$SOURCE/tests/bench/trigger_cost.sh"
}

figure_python() {
    local differ
    python_snapshot || return 1
    "$STALLTRAP" decode --stats python.1.data >stats || return 1
    echo "python_step $((step_ms / 1000)) s vs nothing: python3 -I -S -c 'print(1)' under --source step," \
        "$(jq '.instructions' stats) instructions"
    "$STALLTRAP" decode --force python.1.data -o python.db >/dev/null &&
        "$STALLTRAP" decode --dump calls python.1.data >dump || return 1
    perf_calls python.1.data
    for differ in dump rows; do
        local against=dump
        [ $differ = dump ] || against=python.db
        python3 "$SOURCE/tests/golden/normalize_calls.py" $differ perf.calls "$against" >differ || { cat differ >&2; return 1; }
        # its last line: "1 threads, 123 compared, 0 threads differ"
        echo "python_calls_$differ $(tail -n 1 differ | cut -d' ' -f5) threads differ vs perf script --itrace=cr," \
            "$(tail -n 1 differ | cut -d' ' -f3) calls and returns (goal: 0)"
    done
}

# Ratios of the rounds on stdin, one a line -> their median.
median() { sort -n | sed -n "$((rounds / 2 + 1))p"; }

figure_decode_speed() {
    local i name perf ours calls
    local -A what=([stats]="control flow, no names" [dump]="a line each, with names" [db]="the database")
    python_snapshot || return 1
    calls=$("$STALLTRAP" decode --stats python.1.data | jq '.branches.call + .branches.return') || return 1
    for ((i = 0; i < rounds; i++)); do
        perf=$(timed perf script --itrace=cr --ns -F $perf_fields -i python.1.data) || return 1
        echo "$perf" >>perf.ms
        for name in stats dump db; do
            case $name in
            stats) ours=$(timed "$STALLTRAP" decode --stats python.1.data) ;;
            dump) ours=$(timed "$STALLTRAP" decode --dump calls python.1.data) ;;
            db) ours=$(timed "$STALLTRAP" decode --force python.1.data -o speed.db) ;;
            esac || return 1
            echo "$ours" >>"$name.ms"
            awk "BEGIN { printf \"%.2f\\n\", $perf / $ours }" >>"$name.ratio"
        done
    done
    echo "decode_perf $((calls / $(median <perf.ms))) k calls and returns/s vs nothing: perf script --itrace=cr"
    for name in stats dump db; do
        echo "decode_$name $((calls / $(median <"$name.ms"))) k calls and returns/s vs perf script --itrace=cr: ${what[$name]}"
        echo "decode_${name}_ratio $(median <"$name.ratio") x vs perf script --itrace=cr"
    done
}

# A trace of a processor's own.
figure_trace() {
    [ -n "${TRACE_DATA:-}" ] || { echo "# trace: set TRACE_DATA to a perf.data with Intel PT" >&2; return 0; }
    "$SOURCE/tests/bench/decode_speed.sh" "$TRACE_DATA" ${TRACE_IDS:+"$TRACE_IDS"} &&
        "$SOURCE/tests/bench/database_speed.sh" "$TRACE_DATA" ${TRACE_IDS:+"$TRACE_IDS"}
}

figure_viewer() {
    local failed=0
    "$SOURCE/tests/bench/viewer.sh" || failed=1
    python_snapshot && "$SOURCE/tests/bench/viewer_beside.sh" "$PWD/python.1.data" || failed=1
    return $failed
}

# What a second thread brings for the snapshot of a big host: 64 rings of 4 MiB, of threads and of CPUs, to the database.
figure_rings() {
    local kind bytes slots one two i calls missed=0
    "$STALLTRAP" arm --quiet --source step --no-decode -o one -- /bin/ls -la /etc >arm.out || return 1
    bytes=$("$STALLTRAP" decode --stats one.1.data | jq .bytes) || return 1
    slots=$(((4194304 + bytes - 1) / bytes))
    for kind in thread cpu; do
        python3 "$SOURCE/tests/cli/many_rings.py" "$STALLTRAP" one.1.data rings.data $kind 64 $slots 8 || return 1
        rm -f one.ms two.ms rings.ratio
        for ((i = 0; i < rounds; i++)); do
            one=$(timed "$STALLTRAP" decode --force --threads 1 rings.data -o rings.db) &&
                two=$(timed "$STALLTRAP" decode --force --threads 2 rings.data -o rings.db) || return 1
            echo "$one" >>one.ms
            echo "$two" >>two.ms
            awk "BEGIN { printf \"%.2f\\n\", $one / $two }" >>rings.ratio
        done
        calls=$(sqlite3 rings.db "SELECT value FROM meta WHERE key = 'calls'")
        echo "rings_${kind}_one $(median <one.ms) ms vs nothing: --threads 1, 64 rings of a $kind each, $((64 * slots * bytes)) bytes, $calls calls"
        echo "rings_${kind}_two $(median <two.ms) ms vs nothing: --threads 2"
        echo "rings_${kind}_ratio $(median <rings.ratio) x vs --threads 1 (goal: 1.8)"
        awk "BEGIN { exit !($(median <rings.ratio) >= 1.8) }" || missed=1
        rm -f rings.data rings.db
    done
    return $missed
}

# Windows of a second with and without a recorder, in turns: some hundred seconds in all.
figure_sample_cost() {
    python3 "$SOURCE/tests/bench/sample_cost.py" 9
}

# The same, of `watch` under iperf3.
figure_watch_cost() {
    python3 "$SOURCE/tests/bench/watch_cost.py" 9
}

# What recording costs servers under a load, beside perf and bpftrace: half an hour.
figure_server_cost() {
    python3 "$SOURCE/tests/bench/server_cost.py" 9
}

# How soon the ring of the stalled thread stops, alone and while the recorder is busy.
figure_catch() {
    python3 "$SOURCE/tests/bench/catch.py" 200 || [ $? = 77 ] # inconclusive, which it says
}

# In the emulated computer: how many calls of the thread that stalled lie after its stall, frozen in the kernel and from user space.
figure_freeze() {
    local suite name other said traps in_kernel median most median_end most_end us bytes
    "$SOURCE/tests/ptvm/setup.sh" "" bookworm trixie-backports || return 1
    for suite in trixie-backports bookworm; do
        "$SOURCE/tests/ptvm/test_arm.sh" "$suite" "$SOURCE" "$BUILD" freeze:20 >freeze.out || { cat freeze.out >&2; return 1; }
        said=$(sed -n 's/^freeze: //p' freeze.out)
        read -r traps in_kernel median most median_end most_end us bytes <<<"$said"
        name=aux_pause other=user_space
        [ "$suite" = trixie-backports ] || { name=user_space other=aux_pause; }
        echo "freeze_${name}_calls_after_most $most calls vs freeze_${other}: most of $traps traps, $in_kernel stopped in the kernel, $suite" \
            "$([ $name = user_space ] || echo '(goal: at most 200)')"
        echo "freeze_${name}_calls_after_median $median calls vs freeze_${other}"
        echo "freeze_${name}_calls_after_stall_most $most_end calls vs freeze_${other}: those between the stall's end and the trigger too, median $median_end"
        echo "freeze_${name}_bytes_after_most $bytes bytes vs freeze_${other}: in the thread's ring from after the stall's end"
        echo "freeze_${name}_us $us us vs freeze_${other}: median, from the stall's end until user space had stopped all rings, emulated"
    done
}

[ $# -gt 0 ] || set -- step_rate trigger_cost python decode_speed trace rings viewer sample_cost watch_cost server_cost catch freeze
failed=0
for name; do
    if ! declare -F "figure_$name" >/dev/null; then
        echo "run.sh: no figure '$name' (step_rate, trigger_cost, python, decode_speed, trace, rings, viewer, sample_cost, watch_cost, server_cost, catch, freeze)" >&2
        exit 2
    fi
    "figure_$name" || { echo "run.sh: $name FAILED" >&2; failed=1; }
done
exit $failed
