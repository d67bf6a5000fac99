#!/bin/bash
# Traces of our own and of other programs, damaged in two places around a PSB+: nothing is told that the whole trace does not have, and what is
# missing lies in rows of `gaps` (damage.py). ST_DAMAGE: how many pairs of damages a program; 0: all there are, which takes an hour.
set -u
. "$SOURCE/tests/cli/lib.sh"

damage() { # PAIRS PROGRAM [ARG...]
    rm -f damage.*
    python3 "$SOURCE/tests/golden/damage.py" "$STALLTRAP" "${ST_DAMAGE:-$1}" "${@:2}" >found 2>&1 || fail "$2: damage.py ends with $?" found
    tail -n 1 found
}

seq 40 -1 1 >lines
mkdir folder
touch folder/{1..9}
damage 30 "$programs/nest" 100
damage 8 /bin/ls folder
damage 8 sort -n -o sorted lines
damage 8 awk '{ sum += $1 } END { print sum }' lines
