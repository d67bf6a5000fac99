# guest_jit.sh STALLTRAP CLASSES: runs inside the PT machine. A JVM and node --perf-prof, recorded by our own recorder in the middle of
# their lives; CLASSES holds Turns.class and turns.js. Leaves NAME.1.* in $PTVM_OUT, with what the databases say of the known calls.
. ./record-lib.sh
set -u
stalltrap=$1 classes=$2
cd "$work"

wait_ready() { # FILE
    local i
    for ((i = 0; i < 600; i++)); do
        ! grep -q ready "$1" || return 0
        sleep 0.5
    done
    fail "$1: not ready" "$(cat "$1")"
}

record() { # NAME PID
    mkfifo "ready.$1"
    "$stalltrap" arm --quiet --source intel-pt --no-kernel -p "$2" --ring 4M --ready-fd 9 -o "$PTVM_OUT/$1" 9>"ready.$1" >"arm.out" 2>&1 &
    local arm=$!
    read -r _ <"ready.$1" || fail "$1: not armed: $(cat arm.out)"
    sleep 3
    kill -INT $arm
    wait $arm || fail "$1: arm ends with $?: $(cat arm.out)"
    cat arm.out
    kill "$2"
    "$stalltrap" query "$PTVM_OUT/$1.1.db" "SELECT thread, (SELECT function FROM calls p WHERE p.id = c.parent_id) AS caller, function, count(*)
        FROM calls c WHERE function LIKE '%Turns.%' OR function LIKE '%turns.js%' GROUP BY 1, 2, 3" --format csv
    "$stalltrap" query "$PTVM_OUT/$1.1.db" "SELECT reason, count(*), max(detail) FROM gaps GROUP BY 1" --format csv
}

java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:CompileCommand=quiet -XX:CompileCommand='dontinline,Turns::*' -cp "$classes" Turns >java.out 2>&1 &
jvm=$!
wait_ready java.out
jcmd $jvm Compiler.perfmap
record java $jvm
node --perf-prof --no-opt --always-sparkplug "$classes/turns.js" >node.out 2>&1 &
node=$!
wait_ready node.out
record node $node
