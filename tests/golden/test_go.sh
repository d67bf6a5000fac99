#!/bin/bash
# Goroutines that give each other the turn, and a panic that is recovered: who called whom, however often, in the database of a
# recorded run. When they have their turns is up to Go, so the order is not compared.
set -u
. "$SOURCE/tests/cli/lib.sh"
export GOCACHE=$BUILD/tests/go-cache GO111MODULE=off GOFLAGS= GOTOOLCHAIN=local HOME=$work

go build -o goroutines "$known_trees/goroutines.go" >go.out 2>&1 || fail "go build ends with $?" go.out
GOMAXPROCS=1 "$STALLTRAP" arm --source step --ring 16M -o x -- ./goroutines >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err

cat >calls.sql <<'END'
WITH RECURSIVE placed(id, function, caller, own) AS (
    SELECT id, function, NULL, function LIKE 'main.%' FROM calls WHERE parent_id IS NULL
    UNION ALL
    SELECT c.id, iif(c.function LIKE 'main.%', c.function, p.function), p.function, c.function LIKE 'main.%'
    FROM calls c JOIN placed p ON c.parent_id = p.id
)
SELECT count(*), p.caller, p.function FROM placed p JOIN call USING (id)
WHERE p.own AND flags & 1 = 0 AND p.function NOT LIKE 'main.main%' GROUP BY 2, 3 ORDER BY 2, 3;
END
sqlite3 -readonly -separator ' ' x.1.db <calls.sql >found || fail "no calls"
diff -u - found <<'END' || fail "the calls are not the known ones"
1 main.catcher main.thrower
4 main.consume main.receive
1 main.main main.catcher
1 main.main main.consume
1 main.main main.work
1 main.main.func1 main.produce
3 main.produce main.send
1 main.recovered main.work
3 main.send main.send
6 main.send main.work
1 main.thrower main.recovered
2 main.thrower main.thrower
END
[ "$(sql x.1.db "SELECT value FROM meta WHERE key = 'decode_errors'")" = 0 ] || fail "decoding errors"
bash "$SOURCE/tests/golden/check_db.sh" x.1.db || fail "the database breaks a rule"
