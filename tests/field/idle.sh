# What idle=list and idle=learned make of stalls in system calls of the idle list. Sourced behind lib.sh.
# shellcheck shell=bash
stalls=5
[ "$form" = short ] || stalls=15

# Counts in each mode what is over 134 ms (a bucket's edge; the stalls last 300 ms).
table() { # PID KIND
    local mode watch from
    for mode in list learned; do
        rm -f go
        : >watch.err
        [ "$truth_command" != : ] || : >truth
        "$STALLTRAP" watch -p "$1" --on "$2>135ms,idle=$mode${3:+,$3}" --json >watch.json 2>watch.err &
        watch=$!
        wait_for 60 grep -q '^watching' watch.err || fail "$name: watch does not begin" watch.err
        from=$(true_stalls)
        sleep 4 # of normal load, to learn from
        touch go
        wait_for 120 more_truth $((from + stalls)) || fail "$name: too few stalls" injector.err truth
        kill -TERM "$watch"
        wait "$watch"
        rm -f go
        /usr/bin/python3 "$field/idle_table.py" watch.json truth "$from" "$name" "$2" "$mode" >row.out || fail "$name: no table" watch.json
        cat row.out
        cat row.out >>table
    done
}

fired() { # NAME KIND MODE
    awk -v name="$1" -v kind="$2" -v mode="$3" '$1 == name && $2 == kind && $3 == mode { print $5 }' table
}

printf '%-15s %-7s %-8s %6s %6s %7s %6s\n' stall trigger idle= made fired missed false
