#!/bin/bash
# Recordings with many rings: of threads and of CPUs, of several processes with several threads each, with damage in some. One thread and several
# write the same database, byte for byte.
set -u
. "$SOURCE/tests/cli/lib.sh"

# Every table and index as it is, but when it was made, how long that took, and which page is where in the file.
same_database() { # A B
    local file
    for file in "$1" "$2"; do
        rm -f "$file.plain"
        sqlite3 "$file" "UPDATE meta SET value = 0 WHERE key IN ('decode_us', 'decoded_at'); VACUUM INTO '$file.plain'" ||
            fail "$file cannot be written"
    done
    cmp "$1.plain" "$2.plain" && return
    diff <(sqlite3 "$1" .dump) <(sqlite3 "$2" .dump) | head -n 20 >&2
    return 1
}

sql() { sqlite3 "$1.db" "$2"; }

"$STALLTRAP" arm --quiet --source step --no-decode -o one -- "$programs/nest" 100 >out 2>err || fail "arm ends with $?" err
for kind in thread cpu; do
    for damage in whole damage; do
        python3 "$SOURCE/tests/cli/many_rings.py" "$STALLTRAP" one.1.data "$kind.data" $kind 12 3 4 $damage || fail "no recording"
        for threads in 1 2 3; do
            "$STALLTRAP" decode --force --threads=$threads --stats $kind.data -o $threads.db >$threads.stats 2>err ||
                fail "$kind, $damage, $threads threads: decode ends with $?" err
        done
        # what they are of
        [ "$(sql 1 "SELECT count(DISTINCT pid), count(*) FROM threads WHERE calls > 0")" = "3|12" ] ||
            fail "$kind, $damage: not three processes with four threads each: $(sql 1 'SELECT * FROM threads')"
        if [ $damage = damage ]; then
            [ "$(jq .errors 1.stats)" -ge 4 ] || fail "$kind: the damage is not seen" 1.stats
        else
            [ "$(sql 1 "SELECT count(DISTINCT calls) FROM threads")" = 1 ] ||
                fail "$kind: threads of one trace have other calls: $(sql 1 'SELECT * FROM threads')"
        fi
        for threads in 2 3; do
            same_database 1.db $threads.db || fail "$kind, $damage: $threads threads write another database than one"
            diff <(jq 'del(.seconds)' 1.stats) <(jq 'del(.seconds)' $threads.stats) || fail "$kind, $damage: $threads threads count otherwise"
        done
        echo "$kind, $damage: $(sql 1 'SELECT count(*) FROM calls') calls, $(sql 1 'SELECT count(*) FROM gaps') gaps"
    done
done
