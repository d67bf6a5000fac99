#!/bin/bash
# Where address space is short (vm.overcommit_memory 2, ulimit -v) decode goes on by the walk that needs little, and says so.
set -u
. "$SOURCE/tests/cli/lib.sh"

"$STALLTRAP" arm --source step --no-decode --ring 16M -o x -- "$programs/code64" >arm.out 2>arm.err || fail "arm ends with $?" arm.out arm.err
"$STALLTRAP" decode --dump branches x.1.data >known || fail "decode ends with $?"
[ "$(wc -l <known)" -gt 30 ] || fail "too few branches"
(ulimit -v 400000; "$STALLTRAP" decode --threads=1 --dump branches x.1.data >found 2>decode.err) || fail "decode ends with $?" decode.err
cmp -s known found || fail "other branches: $(diff known found | head -n 4)" decode.err
grep -q 'address space' decode.err || fail "the fast decoder had room: the limit is too high for this test" decode.err
(ulimit -v 400000; "$STALLTRAP" decode --bare -o x.db x.1.data >out 2>decode.err) || fail "decode to a database ends with $?" decode.err
[ "$(sqlite3 x.db 'SELECT count(*) FROM call')" -gt 2 ] || fail "too few calls" decode.err
