#!/bin/bash
# Which room within triggers/, recorder/ and decoder/ includes which: rooms.table says what may be, rooms.py reads what is.
set -u
. "$SOURCE/tests/cli/lib.sh"
rooms=$SOURCE/tests/cli/rooms.py

# What it takes for a fault, and what not.
mkdir -p house/open house/upper house/lower/deep house/attic
printf '#include "house/upper/upper.h"\n#include "house/lower/lower.h"\n#include "base/vec.h"\n' >house/upper/a.c
printf '#include "house/upper/upper.h"\n#include "house/upper/inner.h"\n#include "house/lower/inner.h"\n' >house/lower/b.c
printf '#include "house/upper/inner.h"\n' >house/lower/deep/c.c
printf '#include "house/open/any.h"\n' >house/upper/e.c
touch house/open/any.h house/upper/upper.h house/upper/inner.h house/lower/inner.h house/lower/lower.h house/attic/d.c
cat >table <<'END'
house/open        *.h
house/upper       upper.h gone.h # a comment
house/lower       lower.h
house/lower/deep

house/lower/deep/c.c uses house/upper/inner.h: a reason
house/lower/b.c uses house/lower/lower.h: it did once
END
cat >expected <<'END'
house/attic/d.c: its folder is no room
house/lower/b.c: house/upper/inner.h is no header for other rooms
house/upper/a.c: house/lower/lower.h is of a room below it
house/lower/b.c does not use house/lower/lower.h
house/upper/gone.h is not there
END
python3 "$rooms" table >found || fail "the search ended early"
diff expected found >&2 || fail "an example is judged otherwise than it should be"

cd "$SOURCE" || exit 1
sed -n '/^### One branch/,/^## /p' docs/how-it-works.md | grep -oE '`[a-z_/]+\.c`, `[a-z_]+\(\)`' | tr -d '`,()' >"$work/steps"
[ "$(wc -l <"$work/steps")" -ge 11 ] || fail "the way of a branch has fewer steps than it should" "$work/steps"
while read -r file function; do
    grep -qE "^[a-z].*\b$function\(" "$file" || fail "docs/how-it-works.md: $file has no $function()"
done <"$work/steps"
python3 "$rooms" tests/cli/rooms.table >"$work/found" || fail "the search ended early"
[ ! -s "$work/found" ] || fail "rooms use each other otherwise than tests/cli/rooms.table has it" "$work/found"
