#!/bin/bash
# A snapshot that begins 30 calls deep: each frame turns up as it returns, says that its call was not seen, and holds what it holds.
set -u
. "$SOURCE/tests/cli/lib.sh"

"$STALLTRAP" arm --source step --ring 16K -o x -- "$programs/deep" >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err
[ "$(sql x.1.db "SELECT count(*) FROM gaps WHERE reason = 'overwritten'")" = 1 ] || fail "the ring was not overwritten"
[ "$(sql x.1.db "SELECT count(*) FROM calls WHERE function = 'leaf' AND flags & 3 = 0")" -gt 100 ] || fail "no calls within"

# flags 1: the call was not seen. The outermost of a line is a caller of all that follow.
sqlite3 -readonly x.1.db "SELECT printf('%*s%s %d', depth - (SELECT depth FROM calls WHERE function = 'main'), '', function, flags & 7)
    FROM calls WHERE module = 'deep' AND function IN ('main', 'descend', 'busy', 'last') ORDER BY id" >found
{
    echo 'main 1'
    for ((i = 1; i <= 30; i++)); do printf '%*s%s\n' "$i" '' 'descend 1'; done
    printf '%*s%s\n' 31 '' 'busy 1'
    echo ' last 0'
} >known
diff -u known found || fail "the frames are not the known ones"
rows=$(sql x.1.db "SELECT count(*) FROM calls c JOIN calls p ON p.id = c.parent_id WHERE c.function = 'leaf' AND p.function != 'busy'")
[ "$rows" = 0 ] || fail "$rows calls of leaf are not busy's"
bash "$SOURCE/tests/golden/check_db.sh" x.1.db || fail "the database breaks a rule"
