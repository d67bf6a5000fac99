#!/bin/bash
# Files that take gigabytes of memory when they are opened, and --memory.
. "$(dirname "$0")/../cli/arm_lib.sh"

# peak COMMAND...: runs it; its most memory in MiB, children included, is $peak, and its exit status $status
peak() {
    /usr/bin/python3 -I - "$@" >peak 2>err <<'EOF'
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=open("out", "w"), timeout=100)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
EOF
    read -r status peak <peak
}

"$STALLTRAP" arm --source step --no-decode -q -o made -- ./arm_target end 1 1 >out 2>err || fail "no snapshot"

run "6 compressed records of some KB that open to 190 MB each"
/usr/bin/python3 -I "$SOURCE/tests/hostile/bombs.py" zstd made.1.data bomb.data || fail "no bomb"
peak "$STALLTRAP" decode bomb.data --stats
is "exit status" 1 "$status"
has "the record" 'bomb\.data: at offset 0x[0-9a-f]+: COMPRESSED \(81\): more than [0-9]+ bytes come out of it' err
[ "$peak" -lt 400 ] || fail "it took $peak MiB"

run "a program with a compressed section that opens to 1 GiB"
/usr/bin/python3 -I "$SOURCE/tests/hostile/bombs.py" dwarf arm_target bomb .debug_str || fail "no bomb"
mv arm_target kept
mv bomb arm_target
peak "$STALLTRAP" decode made.1.data -o bomb.db
is "exit status" 0 "$status"
has "the section" 'arm_target: its section \.debug_str takes 1073741824 bytes' err
[ "$peak" -lt 400 ] || fail "it took $peak MiB"
peak "$STALLTRAP" decode --inlined made.1.data -o inlined.db
is "exit status" 0 "$status"
has "the section" 'arm_target: its section \.debug_str takes 1073741824 bytes' err
[ "$peak" -lt 400 ] || fail "it took $peak MiB"

run "more than --memory"
: >input
STALLTRAP_ATTACK=use-memory timeout 100 "$BUILD/tests/hostile/taken_over" decode input --stats --memory 64M >out 2>err
is "exit status" 1 $?
has "why" 'input: decoding it takes more than 320 MiB of memory' err
has "what to do" '--memory SIZE allows more' err

summary
