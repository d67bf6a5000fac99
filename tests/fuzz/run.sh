#!/bin/bash
# Runs each libFuzzer target (all, or those named) over its seeds, what once failed (found/TARGET) and its corpus, then on for
# SECONDS_EACH (60). The corpora stay in the build folder and grow; what makes a target fail is kept in findings/ beside them, a seed
# from then on. With RUNS, so many inputs that are the same each time, without the corpus: the tests look whether anything broke, and
# `make fuzz` looks for what is new. The programs are those of `make fuzz`.
# usage: run.sh [TARGET...]
set -u
sanitized=$(realpath "${BUILD:-build}")/sanitize
programs=$sanitized/tests/fuzz
seconds=${SECONDS_EACH:-60}
[ $# -gt 0 ] || set -- perfdata flow elf trigger
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1

seeds() { # TARGET FOLDER
    case $1 in
    elf) cp "$programs/libelf_seed.so" "$programs/elf_seed_program" "$2" ;;
    trigger) # the manual's examples, one a file
        grep -o -- "--on '[^']*'" "$(dirname "$0")/../../docs/triggers.md" | cut -d"'" -f2 | sort -u |
            while read -r text; do printf %s "$text" >"$2/$(printf %s "$text" | cksum | cut -d' ' -f1)"; done
        ;;
    *) "$programs/$1_seeds" "$2" ;;
    esac || return 1
    [ ! -d "$(dirname "$0")/found/$1" ] || cp "$(dirname "$0")/found/$1"/* "$2"
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
    seeds "$1" "$seeds/given" &&
        find "$findings" \( -name 'crash-*' -o -name 'leak-*' -o -name 'timeout-*' -o -name 'oom-*' \) -exec cp {} "$seeds/given" \; &&
        "$programs/fuzz_$1" -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 "${options[@]}" \
            -artifact_prefix="$findings/" "$corpus" "$seeds/given" >"$findings/log" 2>&1
    local status=$? grown
    grown=$(find "$corpus" -type f | wc -l)
    rm -rf "$seeds"
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
