#!/bin/bash
# OCaml: exceptions that leave several calls, and, where the compiler is OCaml 5's, effects: fibers that are left, continued, given up,
# ended by an exception, run in turns. The tree of the program's own functions with their flags is the known one.
set -u
. "$SOURCE/tests/cli/lib.sh"
export OCAMLRUNPARAM=s=4k # words of the young heap: less to set up, fewer instructions to step

# tree NAME: a line a call of the program's own functions: blanks, its name, and whether its call (c) or return (r) was not seen, or
# it is a tail call (t)
tree() {
    sqlite3 -readonly x.1.db <<END | sed -E 's/caml[A-Z][a-z]*(\.|__)//; s/_[0-9]+( |$)/\1/'
WITH RECURSIVE placed(id, function, flags, own, level) AS (
    SELECT id, function, flags, 0, 0 FROM calls WHERE parent_id IS NULL
    UNION ALL
    SELECT c.id, c.function, c.flags, c.module = '$1' AND c.function LIKE 'caml$2%', p.level + p.own
    FROM calls c JOIN placed p ON c.parent_id = p.id
)
SELECT printf('%*s%s %s%s%s', level, '', function, iif(flags & 1, 'c', ''), iif(flags & 2, 'r', ''), iif(flags & 4, 't', ''))
FROM placed WHERE own ORDER BY id;
END
}

check() { # NAME MODULE
    cp "$known_trees/$1.ml" . || fail "no program $1"
    ocamlopt -g -ccopt -static -o "$1" "$1.ml" >ocaml.out 2>&1 || fail "ocamlopt ends with $?" ocaml.out
    rm -f x.1.data x.1.db
    "$STALLTRAP" arm --source step --ring 16M -o x -- "./$1" >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err
    tree "$1" "$2" | sed 's/ *$//' >found
    diff -u "$known_trees/$1.known" found || fail "$1: the tree is not the known one"
    [ "$(sql x.1.db "SELECT sum(value) FROM meta WHERE key IN ('decode_errors', 'strays')")" = 0 ] || fail "$1: errors or strays"
    bash "$SOURCE/tests/golden/check_db.sh" x.1.db || fail "the database breaks a rule"
}

check exceptions Exceptions
case $(ocamlopt -version) in
[1-4].*) echo "OCaml $(ocamlopt -version) has no effects" ;;
*) check effects Effects ;;
esac
