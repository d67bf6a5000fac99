#!/bin/bash
# Runs each libFuzzer target (all, or those named) over its seeds, what once failed (found/TARGET) and its corpus, then on for
# SECONDS_EACH (60). The corpora stay in the build folder and grow; what makes a target fail is kept in findings/ beside them, a seed
# from then on. With RUNS, so many inputs that are the same each time, without the corpus: the tests look whether anything broke, and
# `make fuzz` looks for what is new. The programs are those of `make fuzz`. parsers.table says which target reads what.
# usage: run.sh [TARGET...]
set -u
here=$(dirname "$(realpath "$0")")
sanitized=$(realpath "${BUILD:-build}")/sanitize
programs=$sanitized/tests/fuzz
seconds=${SECONDS_EACH:-60}
[ $# -gt 0 ] || set -- $("$here/seeds.sh" --targets)
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1

# libFuzzer's limit is of the clock on the wall, which goes on while the machine does not. An input that is done in time when it is
# tried alone is no finding.
only_slow() { # TARGET FINDINGS
    local file
    grep -q '^SUMMARY: libFuzzer: timeout' "$2/log" || return 1
    file=$(sed -n 's/.*Test unit written to \(.*timeout-.*\)/\1/p' "$2/log" | tail -n 1)
    [ -f "$file" ] || return 1
    (ulimit -t 20 && exec "$programs/fuzz_$1" "$file" >/dev/null 2>&1) && rm "$file"
}

run() { # TARGET
    local corpus=$sanitized/corpus/$1 findings=$sanitized/findings/$1 seeds options=(-max_total_time="$seconds" -timeout=20)
    [ -x "$programs/fuzz_$1" ] || { echo "$programs/fuzz_$1 is not there: run 'make fuzz' or 'make sanitize'" >&2; return 1; }
    seeds=$(mktemp -d) || return 1
    if [ -n "${RUNS:-}" ]; then # a limit of time would be a test of the machine: the test's own is there for what hangs
        corpus=$seeds/grown
        options=(-runs="$RUNS" -seed=1 -timeout=0)
    fi
    mkdir -p "$corpus" "$findings" "$seeds/given"
    [ ! -f "$here/dict/$1.dict" ] || options+=(-dict="$here/dict/$1.dict")
    # Listings go to stdout.
    [ "$1" != decode ] && [ "$1" != kallsyms ] || options+=(-close_fd_mask=1)
    "$here/seeds.sh" "$1" "$programs" "$seeds/given" &&
        find "$findings" \( -name 'crash-*' -o -name 'leak-*' -o -name 'timeout-*' -o -name 'oom-*' \) -exec cp {} "$seeds/given" \; &&
        "$programs/fuzz_$1" -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 "${options[@]}" \
            -artifact_prefix="$findings/" "$corpus" "$seeds/given" >"$findings/log" 2>&1
    local status=$? grown
    grown=$(find "$corpus" -type f | wc -l)
    rm -rf "$seeds"
    if [ $status -ne 0 ] && only_slow "$1" "$findings"; then
        echo "fuzz_$1: an input seemed to take long, and does not when it is tried alone: the machine stood still" >&2
        status=0
    fi
    if [ $status -ne 0 ]; then
        tail -n 60 "$findings/log" >&2
        echo "fuzz_$1 FAILED: its input is in $findings, and a seed from now on: copy it to tests/fuzz/found/$1 to keep it" >&2
        return 1
    fi
    echo "fuzz_$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$findings/log") inputs, corpus $grown"
}

failed=0
for target; do
    run "$target" || failed=1
done
exit $failed
