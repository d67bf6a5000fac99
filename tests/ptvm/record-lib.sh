# record-lib.sh: sourced inside the machine: recording by perf, and perf's own decoding. The recordings lie in $work, the guest's own
# memory: in the shared folder the recording's I/O would be traced too and feed back. record-list.sh decodes elsewhere, and says where.
work=${PTVM_WORK:-/run/record}
mkdir -p "$work"
bdir=$work/debug # perf's build-id cache: the guest's vdso and kernel

fail() {
    echo "FAILED: $*"
    exit 1
}

# rec NAME PERF-OPTION... -- PROGRAM ARG...
rec() {
    local name=$1 status=0
    shift
    perf --buildid-dir "$bdir" record -q -o "$work/$name.data" "$@" || status=$?
    [ $status -eq 0 ] || fail "$name: perf record ended with $status"
}

# list NAME SUFFIX ITRACE: perf's decoding to NAME.SUFFIX; errors in it are failures. Without sample times (*-untimed), no time.
list() {
    local fields=tid,pid,cpu,time,flags,ip,addr,sym,symoff,dso
    case $1 in *-untimed) fields=${fields/time,/} ;; esac
    perf --buildid-dir "$bdir" script -i "$work/$1.data" "--itrace=$3e" --ns -F "$fields" >"$work/$1.$2" 2>"$work/said" ||
        fail "$1: perf script: $(head -n 5 "$work/said")"
    [ -s "$work/said" ] && fail "$1: perf script says: $(head -n 5 "$work/said")"
    grep -m 3 'instruction trace error' "$work/$1.$2" && fail "$1: perf could not decode all of it"
    return 0
}

# What record-list.sh is to list outside, where it is twenty times as fast, and to expect of it.
later() { # NAME SUFFIX ITRACE [EXPECTED...]
    echo "$*" >>"$PTVM_OUT/listings-$(basename "$0" .sh)"
}

# perf's calls as it lists them in here, for the comparison with those outside.
inside() { # NAME
    list "$1" cr cr
    mkdir -p "$PTVM_OUT/inside"
    cp "$work/$1.cr" "$PTVM_OUT/inside/"
}

# Files of NAME to OUT: keep OUT NAME SUFFIX...
keep() {
    local out=$1 name=$2 suffix
    shift 2
    for suffix; do cp -r "$work/$name.$suffix" "$out/"; done
}

# keep_vdso OUT: the guest's vdso as OUT/vdso.so and, for perf's --buildid-dir, as OUT/debug.
keep_vdso() {
    local f id
    f=$(find "$bdir" -type f -name vdso | head -n 1)
    [ -s "$f" ] || fail "no vdso in perf's build-id cache"
    id=$(basename "$(dirname "$f")")
    mkdir -p "$1/debug/[vdso]/$id" "$1/debug/.build-id/${id:0:2}"
    cp "$f" "$1/vdso.so"
    cp "$f" "$1/debug/[vdso]/$id/vdso"
    ln -sfn "../../[vdso]/$id" "$1/debug/.build-id/${id:0:2}/${id:2}"
}
