#!/bin/bash
# What somebody writes to a terminal who runs code of his own in the process that decodes, or who names files: text.
. "$(dirname "$0")/../cli/arm_lib.sh"
hostile=$BUILD/tests/hostile/taken_over
: >input
: >output
clean() { # FILE...: nothing in them that a terminal would obey
    local file
    for file; do
        LC_ALL=C grep -nP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|[^\x00-\x7f]' "$file" >unclean && fail "$file holds what a terminal obeys" unclean
    done
}

run "what a worker says that was taken over"
STALLTRAP_ATTACK=say "$hostile" decode -f input -o output >out 2>err || fail "decode ends with $?" err
sed -i 's/^\x1b\[K//' err # that of the line of progress may stay
clean out err
has "its words" 'plain' err
has "its escapes, as text" '^\\x1b]0;owned\\x07\\x1b\[2J\\x9b31mplain$' err
has "a character that is cut off" '\\xe2\\x82$' err
has "the line that it wants to be told" 'wrote \\x1b]0;owned\\x07' out

run "names of files"
name=$'a(b \e[31m'
"$STALLTRAP" arm --source step -o "$name" -- ./arm_target end 1 1 >out 2>err
status=$?
[ $status = 3 ] && { echo "SKIP: no ptrace"; exit 77; }
is "exit status" 0 $status
clean out err
has "one line" '^wrote a\(b \\x1b\[31m\.1\.data, a\(b \\x1b\[31m\.1\.db \([0-9,]+ calls?, [^()]*\)$' out
is "lines" 1 "$(wc -l <out)"

summary
