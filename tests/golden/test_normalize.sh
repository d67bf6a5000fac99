#!/bin/bash
# The rules of normalize_calls.py, one by one: what each makes equal, and that it makes nothing else equal.
set -u
. "$SOURCE/tests/cli/lib.sh"
normalize=$SOURCE/tests/golden/normalize_calls.py
cases=0

# check STATUS WHAT: a comparison of $mode on the files perf and ours, and kallsyms if there is one. All are run at the end.
check() {
    cases=$((cases + 1))
    mkdir "case.$cases"
    cp perf "$ours" "case.$cases"
    [ ! -e kallsyms ] || cp kallsyms "case.$cases"
    printf '%s\t%s\t%s\t%s\n' "$1" "$mode" "$ours" "$2" >"case.$cases/case"
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
names 0 'void java.lang.Thread.sleep+0x0' 'void java.lang.Thread.sleep(long)+0x0'
names 1 'ns::f(int)+0x0' ns::g+0x0

kind() { # STATUS PERF-KIND OUR-KIND
    perf_is p "$2" 1000 a+0x10 2000 b+0x0
    ours_is d 1000 2000 "$3" b+0x0
    check "$1" "kinds $2 and $3"
}
names 0 _init+0x40 malloc@plt+0x6
names 1 found+0x40 malloc@plt+0x0
names 1 other@plt+0x0 malloc@plt+0x6
names 0 _init+0x20 [x+0x1020]+0x0
kind 0 sysret iret
kind 0 iret iret
kind 1 sysret return
kind 0 int syscall
kind 0 syscall syscall
kind 0 'hw int' int
kind 1 'hw int' syscall
kind 0 'tx abrt' int
kind 0 jmp farjmp
kind 1 jcc jmp
kind 1 call jmp
kind 2 jmp ptwrite
kind 2 'tr strt  jmp' tr-start
kind 2 unheard jmp

printf '%s\n' 'ffffffff81000000 T first' 'ffffffff81000000 t second' 'ffffffff81000010 T third' >kallsyms
names 0 second+0x4 first+0x4
names 1 second+0x4 first+0x5
names 1 third+0x0 first+0x0
rm kallsyms
names 1 second+0x4 first+0x4

# The idle threads of two CPUs are two.
idle() { sed "s/\\[-01\\]/[00$1]/; s/ -1 / $1 /"; }
perf_is eval 'tid=0; p call 1000 a+0x10 2000 b+0x0 | idle 0; p call 1000 a+0x10 3000 c+0x0 | idle 1'
ours_is eval 'tid=0; d 1000 3000 call c+0x0 | idle 1; d 1000 2000 call b+0x0 | idle 0'
check 0 "P4: idle threads"
ours_is eval 'tid=0; d 1000 3000 call c+0x0 | idle 0; d 1000 2000 call b+0x0 | idle 1'
check 1 "P4: on the other CPU"

# perf tells the times 12.1, 12.2, 12.3 and 12.4 ns; ours of the third branch is between the second's and the fourth's.
mode=dump ours=dump
four() { # COMMAND NS...: a line for each
    local command=$1 n=0 ns
    shift
    for ns; do
        n=$((n + 1))
        $command "$n" | sed "s/12\.000000001/12.000000$ns/"
    done
}
p_number() { p call "${1}000" a+0x10 2000 b+0x0; }
d_number() { d "${1}000" 2000 call b+0x0; }
timed() { # STATUS NS...
    perf_is four p_number 100 200 300 400
    ours_is four d_number "${@:2}"
    check "$1" "T1: ${*:2}"
}
timed 0 100 200 300 400
timed 0 100 250 200 400
timed 0 100 300 400 300
timed 1 100 200 199 400
timed 1 100 200 401 400
timed 0 099 200 300 999
timed 1 301 300 300 400
timed 1 100 200 300 199
perf_is four p_number 100 300 300 400
ours_is four d_number 100 101 399 400
check 0 "T1: a time that two branches have"
ours_is four d_number 100 099 399 400
check 1 "T1: before the time in front of it"
mode=cpus
perf_is eval 'four p_number 100 200 300 400 | sed "s/\[-01\]/[001]/"'
ours_is eval 'four d_number 100 200 300 400 | sed "s/ -1 / 1 /"'
check 0 "T1: of a CPU"
ours_is eval 'four d_number 100 200 300 299 | sed "s/ -1 / 1 /"'
check 1 "T1: of a CPU, too early"
mode=dump

# Without event, CPU and time.
perf_is eval 'echo " 7/7 call 1000 a+0x10 (/lib/x.so) => 2000 b+0x0 (/lib/y.so)"'
ours_is d 1000 2000 call b+0x0
check 0 "fields that may be missing"

mode=gaps
error() { echo " instruction trace error type 1 time 12.000000001 cpu 0 pid $tid tid $tid ip 0x1 code $1: $2"; }
perf_is eval 'p call 1000 a+0x10 2000 b+0x0; error 7 "Overflow packet"; p return 2010 b+0x10 1005 a+0x15'
ours_is eval 'd 1000 2000 call b+0x0; d 0 0 gap "overflow: x"; d 0 2004 tr-start b+0x4; d 2010 1005 return a+0x15'
check 0 "G1, G3: a gap"
ours_is eval 'd 1000 2000 call b+0x0; d 2010 1005 return a+0x15'
check 1 "G1: no gap"
ours_is eval 'd 1000 2000 call b+0x0; d 0 0 gap "no code: x"; d 0 2004 tr-start b+0x4; d 2010 1005 return a+0x15'
check 1 "G1: another gap"
ours_is eval 'd 1000 2000 call b+0x0; d 2010 1005 return a+0x15; d 0 0 gap "overflow: x"; d 0 1005 tr-start a+0x15'
check 1 "G1: at another place"
ours_is eval 'd 1000 2000 call b+0x0; d 0 0 gap "overflow: x"; d 0 2004 tr-start b+0x4'
check 1 "G3: a branch behind a gap is missing"
ours_is eval 'd 0 2000 tr-start b+0x0; d 1000 2000 call b+0x0; d 0 0 gap "overflow: x"; d 2010 1005 return a+0x15'
check 1 "G3: a start behind no gap"
perf_is eval 'p call 1000 a+0x10 2000 b+0x0; error 7 "Overflow packet"; p "tr strt" 0 "[unknown]" 2004 b+0x4; p return 2010 b+0x10 1005 a+0x15'
ours_is eval 'd 1000 2000 call b+0x0; d 0 0 gap "overflow: x"; d 0 2004 tr-start b+0x4; d 2010 1005 return a+0x15'
check 0 "G3: perf tells the start"
ours_is eval 'd 1000 2000 call b+0x0; d 0 0 gap "overflow: x"; d 0 2005 tr-start b+0x5; d 2010 1005 return a+0x15'
check 1 "G3: another start"
ours_is eval 'd 1000 2000 call b+0x0; d 0 0 gap "overflow: x"; d 2010 1005 return a+0x15'
check 1 "G3: perf tells a start that we do not"
on() { sed "s/ -1 / $1 /"; }
perf_is eval 'p call 1000 a+0x10 2000 b+0x0; p call 2000 b+0x0 3000 c+0x0'
ours_is eval 'd 0 0 gap "overwritten: x" | on 0; d 1000 2000 call b+0x0 | on 1; d 0 2000 tr-start b+0x0 | on 0; d 2000 3000 call c+0x0 | on 0'
check 0 "G3: on another CPU between the two"
ours_is eval 'd 0 0 gap "overwritten: x" | on 0; d 1000 2000 call b+0x0 | on 1; d 0 2000 tr-start b+0x0 | on 1; d 2000 3000 call c+0x0 | on 0'
check 1 "G3: a start behind no gap of its CPU"
perf_is plain_perf
ours_is eval 'd 0 0 gap "overwritten: x"; d 0 fff tr-start a+0xf; d 1000 2000 call b+0x0; d 2010 1005 return a+0x15'
check 0 "G2: what was overwritten"
ours_is eval 'd 0 0 gap "overwritten: x"; d 0 fff tr-start a+0xf; d 2010 1005 return a+0x15'
check 1 "G2: the first call is missing"
perf_is eval 'p call 1000 a+0x10 2000 b+0x0; error 5 "Failed to get instruction"; p return 2010 b+0x10 1005 a+0x15'
ours_is eval 'd 1000 2000 call b+0x0; d 0 0 gap "no code: x"; d 0 2004 tr-start b+0x4; d 2010 1005 return a+0x15'
check 0 "G1: code that is missing"
mode=dump
check 2 "an error, in the mode without gaps"

mode=rows ours=t.db
# rows_are 'ID PARENT DEPTH FUNCTION FLAGS'...
rows_are() {
    local row id parent depth function flags
    rm -f t.db
    {
        cat "$SOURCE/tracedb/schema.sql"
        echo "INSERT INTO process VALUES(1, 7, 'x', NULL, 0, NULL); INSERT INTO thread VALUES(1, 1, 7, 'x', 0, NULL);
            INSERT INTO meta VALUES('origin_perf_ns', 12000000000);
            INSERT INTO module VALUES(1, 'x', '/x', NULL, 0), (2, '[kernel]', '[kernel]', NULL, 1);"
        for row; do
            read -r id parent depth function flags <<<"$row"
            echo "INSERT INTO symbol VALUES($id, CASE WHEN '$function' LIKE '[%' THEN 2 ELSE 1 END, '$function', 0, 0);
                INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES($id, 1, $id, $parent, $depth, $id, 100, 0, $flags);"
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

# A call and its return, at 12.1 and 12.3 ns, between two others.
calls_at() { four p_number 100 | sed 's/1000 a/0900 a/'; p call 1000 a+0x10 2000 b+0x0 | sed 's/000000001/000000200/'; p return 2010 b+0x10 1005 a+0x15 | sed 's/000000001/000000300/'; four p_number 400; }
rows_at() { # STATUS START DURATION
    perf_is calls_at
    rows_are '1 NULL 0 a 0' '2 1 1 b 2' '3 1 1 b 0' '4 1 1 b 2'
    sqlite3 t.db "UPDATE call SET start_ns = 0 WHERE id = 1; UPDATE call SET start_ns = 100, duration_ns = 0 WHERE id = 2;
        UPDATE call SET start_ns = $2, duration_ns = $3 WHERE id = 3; UPDATE call SET start_ns = 400 WHERE id = 4"
    check "$1" "T1: a row from $2 for $3"
}
rows_at 0 200 100
rows_at 0 100 200
rows_at 0 300 100
rows_at 1 099 201
rows_at 1 301 10
rows_at 1 200 201
perf_is calls_at
sqlite3 t.db "DELETE FROM meta"
check 2 "T1: a database without an origin"

perf_is eval 'p call 1000 a+0x10 2000 __x86_indirect_thunk_rax+0x0; p return 2010 b+0x10 1005 a+0x15'
rows_are '1 NULL 0 a 0' '2 1 1 b 0'
check 0 "R5: where an indirect thunk led"
rows_are '1 NULL 0 a 0'
check 1 "R5: a call to a thunk is a call"
perf_is plain_perf

rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 2 2 c 0'
check 1 "a call too deep"
perf_is eval 'p call 1000 a+0x10 2000 b+0x0; p call 2004 b+0x4 3000 c+0x0; p return 3010 c+0x10 2009 b+0x9; p return 2010 b+0x10 1005 a+0x15'
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 2 2 c 0'
check 0 "a call in a call"
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 1 1 c 0'
check 1 "a wrong depth: the one returns before the other is called"
rows_are '1 NULL 0 a 0' '2 1 1 c 0' '3 2 2 b 0'
check 1 "the wrong order"
perf_is eval 'p call 1000 a+0x10 2000 b+0x0; p call 2004 b+0x4 "3000" "[unknown]"; p return 3010 "[unknown]" 2009 b+0x9; p return 2010 b+0x10 1005 a+0x15'
rows_are '1 NULL 0 a 0' '2 1 1 b 0' '3 2 2 [x+0x30] 0'
check 0 "R1: code without a symbol is no stand-in"
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

# The call at 1000 is of 5 bytes, as the first thread's return tells; the second one's return is behind a call at 1008.
perf_is eval 'plain_perf; tid=9; p call 1000 a+0x10 2000 b+0x0; p return 3010 c+0x10 100d a+0x1d'
rows_are '1 NULL 0 a 0' '2 1 1 b 0'
sqlite3 t.db "INSERT INTO thread VALUES(2, 1, 9, 'y', 0, NULL); INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) VALUES(11, 2, 1, NULL, 0, 11, 100, 0, 0), (12, 2, 2, 11, 1, 12, 100, 0, 2)"
check 0 "R4: a return goes back right behind its call"
k=ffffffff810000
perf_is eval 'p call ${k}00 s+0x10 ${k}80 __switch_to_asm+0x0; p "tr strt" 0 "[unknown]" ${k}a0 f+0x0; p return ${k}a8 f+0x8 ${k}0d s+0x1d'
rows_are '1 NULL 0 s 0' '2 1 1 __switch_to_asm 2'
check 0 "R6: a switch that was not seen to return"
rows_are '1 NULL 0 s 0' '2 1 1 __switch_to_asm 0'
check 1 "R6: it has no return"

mode=cpus ours=dump
switched() { # KIND IP PLACE: how a thread's turn begins
    p call 1000 a+0x10 2000 b+0x0
    p "$@"
    p return ${k}10 w+0x10 ${k}20 x+0x0
    tid=8
    p call 3000 x+0x0 4000 c+0x0
}
ours_switched() { # FROM TO KIND SYMBOL: the same, of the thread whose turn it is
    d 1000 2000 call b+0x0
    tid=8
    d "$@"
    d ${k}10 ${k}20 return x+0x0
    d 3000 4000 call c+0x0
}
perf_is switched "tr strt" 0 "[unknown]" ${k}06 w+0x6
ours_is ours_switched 0 ${k}06 tr-start w+0x6
check 0 "C1: kernel branches before the context-switch record"
ours_is eval 'd 1000 2000 call b+0x0; tid=8; d 0 ${k}06 tr-start w+0x6; d ${k}10 ${k}20 return x+0x0; tid=7; d 3000 4000 call c+0x0'
check 1 "C1: and none behind it"
ours_is eval 'tid=8; ours_switched 0 ${k}06 tr-start w+0x6'
check 1 "C1: and none before"
perf_is switched "tr strt" 0 "[unknown]" 5006 w+0x6
ours_is ours_switched 0 5006 tr-start w+0x6
check 1 "C1: not in user code"
perf_is switched call ${k}08 __switch_to+0x8 ${k}0c y+0x0
ours_is ours_switched ${k}08 ${k}0c call y+0x0
check 0 "C1: from __switch_to on"
perf_is switched call ${k}08 switch+0x8 ${k}0c y+0x0
check 1 "C1: from nothing else on"
first() { # START: of the CPU's first branches
    p "tr strt" 0 "[unknown]" $1 w+0x6
    p return ${k}10 w+0x10 ${k}20 x+0x0
    tid=8
    p call 3000 x+0x0 4000 c+0x0
}
ours_first() {
    d 0 $1 tr-start w+0x6
    d ${k}10 ${k}20 return x+0x0
    d 3000 4000 call c+0x0
}
perf_is first ${k}06
ours_is eval "tid=8; ours_first ${k}06"
check 0 "C1: one ran there before that was not traced yet"
ours_is eval "tid=9; ours_first ${k}06"
check 1 "C1: and all others are of the same thread"
perf_is first 5006
ours_is eval 'tid=8; ours_first 5006'
check 1 "C1: not in user code, if they are the first"
mode=rows ours=t.db
echo not a database >t.db
check 2 "no database"

# C2: a thread on CPU 1, then on CPU 0.
at() { # CPU NS: makes the lines of p or d those of a CPU and a time
    sed "s/\\[-01\\]/[00$1]/; s/^\\(12\\.00000000\\)1 \\([0-9]*\\) -1/\\1${2:-1} \\2 $1/"
}
perf_is eval 'p call 3000 c+0x10 4000 e+0x0 | at 0; p call 1000 a+0x10 2000 b+0x0 | at 1'
rows_are '1 NULL 0 a 0' '2 1 1 b 2' '3 2 2 e 2'
for second in 2 0; do
    (tid=7; d 3000 4000 call e+0x0 | at 0 $second; d 1000 2000 call b+0x0 | at 1 1) >dump
    check $((second == 0)) "C2: turns on several CPUs follow their times: ${second} and 1"
    cp dump "case.$cases/dump"
done
python3 - "$normalize" $cases <<'EOF' || fail "the rules of normalize_calls.py"
import contextlib, importlib.util, io, os, sys

spec = importlib.util.spec_from_file_location("normalize_calls", sys.argv[1])
normalize = importlib.util.module_from_spec(spec)
spec.loader.exec_module(normalize)
cases = int(sys.argv[2])
bad = 0
for case in range(1, cases + 1):
    os.chdir(f"case.{case}")
    expected, mode, ours, what = open("case", encoding="utf-8").read().rstrip("\n").split("\t")
    sys.argv = ["normalize_calls.py", mode, "perf", ours] + [f for f in ("kallsyms", "dump") if os.path.exists(f) and f != ours]
    normalize.aliases.clear()
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        status = normalize.main()
    if status != int(expected):
        print(f"{mode}: {what}: exit status {status}, expected {expected}\n{out.getvalue()}")
        print(open("perf", encoding="utf-8").read() + ("" if mode == "rows" else open(ours, encoding="utf-8").read()))
        bad += 1
    os.chdir("..")
print(f"{cases} checks, {bad} failed")
sys.exit(bad != 0 or cases < 90)
EOF
