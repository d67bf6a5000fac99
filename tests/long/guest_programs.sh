# guest_programs.sh WORKLOADS: runs inside the PT machine, from programs.sh. Records every small workload with and without compression of
# returns, with and without cyc, and real programs; leaves NAME.data in $PTVM_OUT, and the guest's vdso. Decoding is done outside.
. ./record-lib.sh
set -u
workloads=$1
pt=intel_pt
cd "$work"

# keep_recording NAME: out of the machine's memory
keep_recording() {
    cp -r "$work/$1.data" "$PTVM_OUT/"
    rm -r "$work/$1.data"
}

# record NAME EXIT-STATUS PERF-OPTION... -- PROGRAM ARG...
record() {
    local name=$1 expected=$2 status=0
    shift 2
    timeout 250 perf --buildid-dir "$bdir" record -q -o "$work/$name.data" "$@" >"$work/out" 2>"$work/err" || status=$?
    [ $status -eq "$expected" ] || fail "$name: ended with $status: $(tail -n 3 "$work/err")"
    keep_recording "$name"
}

echo 'int main(void) { return 0; }' >"$work/small.c"

real() { # NAME COMMAND...
    local name=$1
    shift
    record "$name" 0 -m,128M -e $pt/cyc=1/u -- "$@"
    record "$name-noretcomp" 0 -m,128M -e $pt/noretcomp=1/u -- "$@"
    echo "$name: $(du -sh "$PTVM_OUT/$name.data" | cut -f 1)"
}
real git git --version
real sqlite3 sqlite3 :memory: 'CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2), (3, 4), (5, 6); SELECT a, sum(b) FROM t GROUP BY a ORDER BY b DESC'
real python3 /usr/bin/python3 -I -S -c 'print(sum(i * i for i in range(100)))'
real gcc gcc -O1 -c -o "$work/small.o" "$work/small.c"
[ ! -x "$workloads/goroutines" ] || real goroutines "$workloads/goroutines"
keep_vdso "$PTVM_OUT" # before a 32-bit one is there, too

for program in thunks recursion func_pointers tail_calls setjmp_longjmp signals nested_signals exceptions threads ifunc nest coroutine fibers \
    code32 segv dlopen_close plt_lazy plt_now fork_exec vfork_exec; do
    expected=0
    [ $program != segv ] || expected=139
    for variant in "" noretcomp=1 cyc=1 noretcomp=1,cyc=1; do
        name=$program${variant:+-${variant//[,=1]/}}
        record "$name" $expected -m,2M -e "$pt/$variant/u" -- "$workloads/$program"
    done
done
