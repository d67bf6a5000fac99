#!/bin/bash
# arm and bad input: a clear message, the right exit status, no half file.
. "$(dirname "$0")/arm_lib.sh"

# try STATUS MESSAGE OPTION...: arm must end so and leave nothing
try() {
    local expected=$1 message=$2 status
    shift 2
    timeout -k 5 600 "$STALLTRAP" arm "$@" >out 2>err
    status=$?
    is "exit status of arm $*" "$expected" "$status"
    has "message of arm $*" "$message" err
    is "stdout of arm $*" "" "$(cat out)"
    is "files left by arm $*" "" "$(find . -name 'stalltrap.*' -o -name '.stalltrap*')"
    no_leftovers
}

# As an ordinary user, who has nothing but their own processes.
unprivileged=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs)
[ "$(id -u)" = 0 ] || unprivileged=()
cp "$STALLTRAP" ./stalltrap-copy
chmod 755 ./stalltrap-copy

start_target idle 20
gone=$(sh -c 'echo $$')

run "targets that are not there"
try 1 "^stalltrap arm: no process $gone: it does not exist or has ended" --source step -p "$gone"
try 2 "no process is named 'arm_target_is_long'" --source step --comm arm_target_is_long
has "the hint" "try 'arm_target_is_l'" err
try 1 "no cgroup" --source step --cgroup /no/such/cgroup
try 2 'whom to watch' --source step
try 2 "-p: 'x' is no whole number" --source step -p x
try 2 'one target only' --source step -p "$target" --comm arm_target

run "triggers with mistakes in them"
try 2 "off.?cpu" --source step -p "$target" --on 'offcup>20ms'
has "the place" '^  \^\^\^\^\^\^$' err
has "the nearest word" "did you mean .offcpu" err
try 2 "a threshold needs a unit" --source step -p "$target" --on 'offcpu>20'
has "the place" '^         \^\^$' err
has "what to write" "did you mean '20ms'" err
try 2 "" --source step -p "$target" --on ''

run "options with mistakes in them"
try 2 "unknown option '--sauce': did you mean '--source'" --sauce step -p "$target"
try 2 "there is no source 'stepp'" --source stepp -p "$target"
try 2 "--ring: '4X'" --ring 4X -p "$target"
try 2 "--timeout: '5' has no unit: write 5s or 5ms" --source step -p "$target" --timeout 5
try 2 "--ready-fd 77" --source step -p "$target" --ready-fd 77
try 2 "unexpected argument 'extra'" --source step -p "$target" extra
try 2 "unexpected argument '77'" --source step --comm arm_target 77
try 3 "source step records user code only" --source step --kernel -p "$target"
try 3 "cannot trace all processes" --source step -a

run "commands that there are not"
"$STALLTRAP" amr -p "$target" >out 2>err
is "exit status of 'stalltrap amr'" 2 $?
has "what is wrong" "^stalltrap: no command 'amr'$" err
has "the nearest command" "did you mean 'arm'" err
"$STALLTRAP" >out 2>err
is "exit status of 'stalltrap'" 2 $?
is "stdout of 'stalltrap'" "" "$(cat out)"
has "what it lists" '^  stalltrap doctor ' err
"$STALLTRAP" --help >out 2>err
is "exit status of --help" 0 $?
is "stderr of --help" "" "$(cat err)"
has "what --help lists" '^  stalltrap doctor ' out

run "auto never steps"
"$STALLTRAP" doctor --json >doctor # not into a pipe: grep ends at the first line that matches
if ! grep -Eq '"key": "source\.(intel-pt|sample)".*"verdict": "yes"' doctor; then
    try 3 "--source step" -p "$target"
fi

run "output that cannot be written"
try 1 "cannot create a file for '/no/such/folder/x.1.data'" --source step -p "$target" -o /no/such/folder/x
try 1 "cannot create a file for '/proc/x.1.data'" --source step -p "$target" -o /proc/x
try 2 "the prefix of the files is empty" --source step -p "$target" -o ''
try 2 "'/tmp/' is a folder: the files need a name" --source step -p "$target" -o /tmp/

run "a full disk: the recording goes on, nothing half-written stays, the exit status tells"
mkdir full
unshare -m bash -c '
    mount -t tmpfs -o size=16k tmpfs full || exit 99
    "$STALLTRAP" arm --source step --no-decode -o full/x -- ./arm_target end 1 200 >out 2>err
    echo $? >status
    find full -type f >left'
is "exit status" 1 "$(cat status)"
has "message" 'No space left on device' err
is "files" "" "$(cat left)"
is "stdout" "" "$(cat out)"

run "a process of another user, without privilege"
if [ "$(id -u)" = 0 ]; then
    mkdir nobody
    chown 65534 nobody
    cd nobody || exit 1
    "${unprivileged[@]}" ../stalltrap-copy arm --source step -p "$target" >../out 2>../err
    is "exit status" 3 $?
    has "message" "no permission to record process $target" ../err
    # Root with the capabilities to trace, but not to open what belongs to another user.
    setpriv --reuid 65534 --regid 65534 --clear-groups sleep 1000 &
    theirs=$!
    started+=("$theirs")
    wait_for "the process of another user" grep -q '^Uid:[[:space:]]*65534' "/proc/$theirs/status"
    setpriv --bounding-set=-all,+sys_ptrace,+perfmon,+dac_read_search --inh-caps=-all "$STALLTRAP" arm --source step -p "$theirs" -o ../x >../out 2>../err
    is "exit status" 3 $?
    has "message" "no permission to trace process $theirs" ../err
    has "what to do" "CAP_DAC_OVERRIDE for a process of another user" ../err
    is "files" "" "$(ls -A .)"

    run "a folder of another user, without privilege"
    "${unprivileged[@]}" ../arm_target idle 50 &
    own=$!
    disown $own
    started+=("$own")
    wait_for "the program under another user" sh -c "grep -qx arm_target /proc/$own/comm && ! grep -q '^Uid:[[:space:]]*0' /proc/$own/status"
    "${unprivileged[@]}" ../stalltrap-copy arm --source step -p "$own" -o ../x >../out 2>../err
    is "exit status" 1 $?
    has "message" "cannot create a file for '../x.1.data': Permission denied" ../err

    run "triggers need BPF: without it, exit 3"
    "${unprivileged[@]}" ../stalltrap-copy arm --source step -p "$own" --on 'offcpu>20ms' >../out 2>../err
    is "exit status" 3 $?
    has "message" 'CAP_BPF' ../err
    is "files" "" "$(ls -A .)"
    "${unprivileged[@]}" ../stalltrap-copy watch -p "$own" --on 'offcpu>20ms' >../out 2>../err
    is "exit status of watch" 3 $?
    has "message" 'CAP_BPF' ../err
    lacks "advice" 'snapshot' ../err

    if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
        run "one's own process, without privilege, is recorded"
        "${unprivileged[@]}" ../stalltrap-copy arm --source step --no-decode -o own -- ../arm_target end 5 5 >../out 2>../err
        is "exit status" 0 $?
        perf_reads own.1.data
    fi
    cd ..
fi

run "a process that ends while it is being armed"
for i in 1 2 3 4 5; do
    ./arm_target end "$i" 1 &
    brief=$!
    timeout -k 5 600 "$STALLTRAP" arm --source step --no-decode -o brief -p "$brief" >out 2>err
    status=$?
    case $status in
    0) has "result" '^wrote brief\.' out ;;
    1) has "message" 'ended|no process|has ended|does not exist' err ;;
    *) fail "exit status $status: $(cat err)" ;;
    esac
    wait $brief 2>/dev/null
done
no_leftovers

run "two process ids, as pidof prints them"
start_target idle 20
second=$target
start_target idle 20
for pids in "$second $target" "$second,$target" "$second, $target"; do
    "$STALLTRAP" watch -p "$pids" --on 'offcpu>1ms' --timeout 100ms >out 2>err
    is "exit status of watch -p '$pids'" 0 $?
done
"$STALLTRAP" watch --on 'offcpu>1ms' --timeout 100ms -p "$second" "$target" >out 2>err
is "exit status of watch -p $second $target" 0 $?
"$STALLTRAP" arm --source sample --no-decode -o two -p "$second" "$target" --timeout 300ms >out 2>err
is "exit status of arm -p $second $target" 0 $?
has "the armed line" ', 2 threads' err

run "help for a command"
"$STALLTRAP" help arm >out 2>err
is "exit status" 0 $?
has "its options" '^  *--cooldown DUR' out
"$STALLTRAP" help armm >out 2>err
is "exit status" 2 $?
has "message" "did you mean 'arm'" err

run "the same for watch"
"$STALLTRAP" watch -p "$target" >out 2>err
is "exit status" 2 $?
has "message" 'Name a trigger' err
"$STALLTRAP" watch -p "$gone" --on "offcpu>1ms" >out 2>err
is "exit status" 1 $?

summary
