#!/bin/bash
# The rules of normalize_calls.py, one by one: what each makes equal, and that it makes nothing else equal.
set -u
. "$SOURCE/tests/cli/lib.sh"
normalize=$SOURCE/tests/golden/normalize_calls.py
passed=0

# check STATUS WHAT: runs the comparison of $mode on the files perf and ours
check() {
    local status
    python3 "$normalize" "$mode" perf "$ours" >out 2>&1
    status=$?
    [ $status -eq "$1" ] || fail "$mode: $2: exit status $status, expected $1" perf "$ours" out
    passed=$((passed + 1))
}

# perf's lines: KIND IP PLACE [ADDR PLACE]; a place is NAME+0xOFFSET or [unknown]
p() {
    printf ' %s/%s [-01] 12.000000001:      branches:u:   %-20s %16s %s (/lib/x.so) => %16s %s (/lib/y.so)\n' \
        "$tid" "$tid" "$1" "$2" "$3" "${4:-0}" "${5:-[unknown]}"
}
d() { # the dump's: FROM TO KIND SYMBOL
    echo "12.000000001 $tid -1 $*"
}
perf_is() (tid=7; "$@" >perf)
ours_is() (tid=7; "$@" >"$ours")

mode=dump ours=dump
plain_perf() { p call 1000 a+0x10 2000 b+0x0; p return 2010 b+0x10 1005 a+0x15; }
perf_is plain_perf
ours_is eval 'd 1000 2000 call b+0x0; d 2010 1005 return+indirect a+0x15'
check 0 "the same; D2: marks are left out"
ours_is eval 'd 1000 2000 call b+0x0'
check 1 "one is missing at the end"
ours_is eval 'd 1000 2000 call b+0x0; d 2010 1005 jmp a+0x15'
check 1 "another kind"
ours_is eval 'd 1000 2000 call b+0x0; d 2011 1005 return a+0x15'
check 1 "another source"
ours_is eval 'd 1000 2001 call b+0x0; d 2010 1005 return a+0x15'
check 1 "another target"
ours_is eval 'd 1000 2000 call c+0x0; d 2010 1005 return a+0x15'
check 1 "another name"
ours_is eval 'd 1000 2000 call b+0x1; d 2010 1005 return a+0x15'
check 1 "another offset"
ours_is eval 'd 2010 1005 return a+0x15; d 1000 2000 call b+0x0'
check 1 "another order"
ours_is eval 'tid=8; d 1000 2000 call b+0x0; d 2010 1005 return a+0x15'
check 1 "another thread"
ours_is eval 'd 1000 2000 call b+0x0; d 0 0 gap "overflow: "; d 2010 1005 return a+0x15'
check 2 "a gap"

perf_is eval 'plain_perf; tid=8; plain_perf'
ours_is eval 'd 1000 2000 call b+0x0; tid=8; d 1000 2000 call b+0x0; d 2010 1005 return a+0x15; tid=7; d 2010 1005 return a+0x15'
check 0 "threads are interleaved in another way"

ours_is eval 'd 1000 2000 call b+0x0; d 2010 1005 return a+0x15'
perf_is eval 'plain_perf; echo "  0/0  [000]  12.3: stalltrap:stall:       0       0 [unknown] ([unknown])"'
check 0 "P1: another event's sample"
perf_is eval 'plain_perf; echo " instruction trace error type 1 time 1.2 cpu 0 pid 7 tid 7 ip 0x1 code 6: Trace does not match instruction"'
check 2 "an error that perf lists"
perf_is true
ours_is true
check 2 "nothing to compare"

perf_is eval 'p "tr strt" 0 "[unknown]" 1000 a+0x0; p "tr end  syscall" 1005 a+0x5; p "tr strt" 0 "[unknown]" 1007 a+0x7; p "tr end  async" 1008 a+0x8'
ours_is eval 'd 0 1000 tr-start a+0x0; d 1005 0 syscall a+0x5; d 1005 0 tr-end a+0x5; d 0 1007 tr-start+resumed a+0x7; d 1008 0 tr-end+async a+0x8'
check 0 "P2, D1: where the trace begins and ends"
ours_is eval 'd 0 1000 tr-start a+0x0; d 1005 0 syscall a+0x5; d 1005 0 tr-end a+0x5; d 0 1007 tr-start+resumed a+0x7; d 1008 0 tr-end a+0x8'
check 1 "an asynchronous end is no other end"
ours_is eval 'd 0 1000 tr-start a+0x0; d 1005 0 tr-end a+0x5; d 0 1007 tr-start+resumed a+0x7; d 1008 0 tr-end+async a+0x8'
check 1 "a system call is missing"

perf_is eval 'p "hw int" 1000 a+0x10 2000 b+0x0; p iret 2010 b+0x10 1010 a+0x10; p sysret 2020 b+0x20 1020 a+0x20'
ours_is eval 'd 1000 2000 int b+0x0; d 2010 1010 iret a+0x10; d 2020 1020 iret a+0x20'
check 0 "P3, P4: interrupts and far returns"
ours_is eval 'd 1000 2000 call b+0x0; d 2010 1010 iret a+0x10; d 2020 1020 iret a+0x20'
check 1 "an interrupt is no call"
ours_is eval 'd 1000 2000 int b+0x0; d 2010 1010 iret a+0x10; d 2020 1020 return a+0x20'
check 1 "a far return is no return"

names() { # STATUS PERF-NAME OUR-NAME
    perf_is p call 1000 a+0x10 2000 "$2"
    ours_is d 1000 2000 call "$3"
    check "$1" "names $2 and $3"
}
names 0 memcpy@@GLIBC_2.14+0x0 memcpy+0x0
names 0 memcpy@GLIBC_2.2.5+0x0 memcpy+0x0
names 1 memcpy@@GLIBC_2.14+0x0 memmove+0x0
names 0 @plt+0x0 malloc@plt+0x0
names 0 _init+0x40 malloc@plt+0x0
names 0 other@plt+0x0 malloc@plt+0x0
names 0 [unknown] malloc@plt+0x0
names 1 malloc+0x0 malloc@plt+0x0
names 1 @plt+0x0 malloc+0x0
names 0 [unknown] [libgcc_s.so.1+0x14c40]+0x0
names 1 [unknown] found+0x0
names 1 found+0x0 [x.so+0x2000]+0x0
names 0 [unknown] -
names 1 found+0x0 -
names 0 'ns::f(int, char const*) const+0x0' ns::f+0x0
names 1 'ns::f(int)+0x0' ns::g+0x0

mode=rows ours=t.db
# rows_are 'ID PARENT DEPTH FUNCTION FLAGS'...
rows_are() {
    local row id parent depth function flags
    rm -f t.db
    {
        cat "$SOURCE/tracedb/schema.sql"
        echo "INSERT INTO process VALUES(1, 7, 'x', NULL, 0, NULL); INSERT INTO thread VALUES(1, 1, 7, 'x', 0, NULL);
            INSERT INTO module VALUES(1, 'x', '/x', NULL, 0), (2, '[kernel]', '[kernel]', NULL, 1);"
        for row; do
            read -r id parent depth function flags <<<"$row"
            echo "INSERT INTO symbol VALUES($id, CASE WHEN '$function' LIKE '[%' THEN 2 ELSE 1 END, '$function', 0, 0);
                INSERT INTO call VALUES($id, 1, $id, $parent, $depth, $id, 100, 0, $flags);"
        done
    } | sqlite3 t.db
}
perf_is plain_perf
rows_are '1 NULL 0 a 0' '2 1 1 b 0'
check 0 "the same; R1: the outermost row"
rows_are '1 NULL 0 a 0' '2 1 1 b 2'
check 1 "a return is missing"
rows_are '1 NULL 0 a 0' '2 1 1 c 0'
check 1 "another name"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 1 1 b 0'
check 1 "a call too many"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 2 2 [syscall] 0' '4 1 1 c 1' '5 4 2 [signal] 0' '6 5 3 handler 0'
check 0 "R1: stand-ins, a call that was not seen, a signal handler"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 1 1 handler 0'
check 1 "R1: a handler stands in [signal]"

rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 1 1 asm_exc_page_fault 0' '4 1 1 entry_SYSCALL_64_after_hwframe 0'
check 0 "R1: entries of the kernel"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 1 1 asm_load_gs_index 0'
check 1 "R1: a function of the kernel in assembler is no entry"
rows_are '1 NULL 0 a 0' '2 1 1 [vdso+0x6b0] 0'
check 1 "R1: code without a symbol is no stand-in"

perf_is eval 'p call 1000 a+0x10 2000 __x86_indirect_thunk_rax+0x0; p return 2010 b+0x10 1005 a+0x15'
rows_are '1 NULL 0 a 0' '2 1 1 b 0'
check 0 "R5: where an indirect thunk led"
rows_are '1 NULL 0 a 0'
check 1 "R5: a call to a thunk is a call"

perf_is eval 'p call 1000 a+0x10 2000 b+0x0; p return 3010 c+0x10 1005 a+0x15'
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 1 1 c 4'
check 0 "R2: a tail call"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 1 1 c 4' '4 1 1 d 4'
check 0 "R2: two tail calls"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 2 2 c 4'
check 0 "R2: the end of a tail call without a beginning is nobody's return"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 1 1 c 0'
check 1 "R2: c was called, then"

call_within() { plain_perf | sed "1a$(p call 2001 b+0x1 2006 b+0x6)"; }
perf_is call_within
rows_are '1 NULL 0 a 0' '2 1 1 b 0'
check 0 "R3: a call to the next instruction"
perf_is eval 'p call 1000 a+0x10 2000 b+0x0; p call 2010 b+0x10 2040 b+0x40; p return 2050 b+0x50 2015 b+0x15; p return 2020 b+0x20 1005 a+0x15'
check 0 "R3: a call into the middle of its own function"
perf_is eval 'p call 1000 a+0x10 2000 b+0x0; p call 2010 b+0x10 2000 b+0x0; p return 2020 b+0x20 2015 b+0x15; p return 2020 b+0x20 1005 a+0x15'
check 1 "R3: recursion is a call"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 2 2 b 0'
check 0 "recursion"

perf_is eval 'p call 1000 a+0x10 2000 b+0x0; p call 2010 b+0x10 3000 longjmp+0x0; p return 2020 b+0x20 1005 a+0x15'
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 2 2 longjmp 2'
check 0 "R4: calls that were left have flag 2"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 2 2 longjmp 0'
check 1 "R4: without flag 2 they have returned"
perf_is eval 'plain_perf; p return 1020 a+0x20 9999 main+0x99'
rows_are '1 NULL 0 a 1' '2 1 1 b 0'
check 0 "R4: a return out of a call that was not seen"

echo not a database >t.db
check 2 "no database"
echo "$passed checks passed"
[ $passed -gt 45 ]
