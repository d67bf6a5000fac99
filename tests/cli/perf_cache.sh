# perf reads the code of the vdso out of its build-id cache, where `perf record` puts it, by default in the home folder: a listing would
# depend on what was recorded there before. The tests have a cache of their own, one a kernel. Sourced; BUILD is in the environment.
# shellcheck shell=bash
perf_cache=$BUILD/tests/perf-cache-$(uname -r)
export PERF_CONFIG=$perf_cache/config

if command -v perf >/dev/null && [ ! -d "$perf_cache" ]; then
    made=$(mktemp -d "$BUILD/tests/perf-cache.XXXXXX")
    # On a busy machine `perf record` of some versions aborts now and then.
    for _ in 1 2 3 4 5 6 7 8; do
        perf --buildid-dir "$made" record -q -o "$made.data" -e cpu-clock:u true >/dev/null 2>&1
        [ ! -d "$made/[vdso]" ] || break
    done
    printf '[buildid]\n\tdir = "%s"\n' "$perf_cache" >"$made/config"
    # Who comes second leaves it to who came first.
    [ ! -d "$made/[vdso]" ] || mv -T "$made" "$perf_cache" 2>/dev/null
    rm -rf "$made" "$made.data"
    unset made
fi
