#!/bin/bash
# An hour with the timeline in a minute: a user's session in a real terminal (tmux), over 40 actions by key, mouse and command, each with
# what the user then sees. After the last one the shell is as it was.
set -u
here=$SOURCE/tests/golden/viewer
work=$(mktemp -d)
trap 'tmux -S "$work/tmux" kill-server 2>/dev/null; rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
unset COLUMNS LINES COLORTERM TMUX
cd "$work" || exit 1
passed=0 failed=0

{ echo "PRAGMA user_version = 2;"; cat "$SOURCE/tracedb/schema.sql" "$here/known.sql" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 known.db

pane() { tmux -S tmux "$@"; }

colours= # -e: the screen with its colours
look() { pane capture-pane -p $colours -t 0 >screen; }

# Keys as tmux names them, or text after -l; the screen must show the pattern within two minutes, and not before.
action() { # WHAT PATTERN KEY...
    local what=$1 pattern=$2 i
    shift 2
    look
    if grep -q -- "$pattern" screen; then
        echo "FAILED: $what: '$pattern' is there before:"
        cat screen
        failed=$((failed + 1))
    fi
    pane send-keys -t 0 "$@"
    for ((i = 0; i < 6000; i++)); do
        look
        if grep -q -- "$pattern" screen; then
            passed=$((passed + 1))
            return
        fi
        sleep 0.02
    done
    echo "FAILED: $what: no '$pattern' in:"
    cat screen
    failed=$((failed + 1))
}

# The same, until the screen shows the pattern no more; it does before.
gone() { # WHAT PATTERN KEY...
    local what=$1 pattern=$2 i
    shift 2
    look
    grep -q -- "$pattern" screen || { echo "FAILED: $what: '$pattern' is not there before"; failed=$((failed + 1)); }
    pane send-keys -t 0 "$@"
    for ((i = 0; i < 6000; i++)); do
        look
        if ! grep -q -- "$pattern" screen; then
            passed=$((passed + 1))
            return
        fi
        sleep 0.02
    done
    echo "FAILED: $what: '$pattern' stays in:"
    cat screen
    failed=$((failed + 1))
}

pane -f /dev/null new-session -d -x 100 -y 30 sh
pane resize-window -t 0 -x 100 -y 30
action "the program starts at the stall" 'selection 450 us' -l "TERM=tmux-256color '$STALLTRAP' view known.db
"
action "0: the whole trace" 'view 12.0 ms' 0
action "w: closer" 'view 6.00 ms' w
action "w: closer still" 'view 3.00 ms' w
action "d: on" '│4.*│5.*ms' d
action "a: back" '│2.0ms' a
action "s: out" 'view 6.00 ms' s
action "0: all again" 'view 12.0 ms' 0
action "u: to the caller" '^read  (libc.so.6)' u
action "u: to its caller" '^main  (app)' u
action "L: into the longest call" '^read  (libc.so.6)' L
action "Enter: zoom to it" 'view 880 us' Enter
action "Esc: where it was" 'view 12.0 ms' Escape
action "k: to the caller by arrow" '^main  (app)' Up
action "j: into its first call" '^work  (app)' Down
action "l: the next call of this depth" 'starts at 1' l
action "h: the one before" 'starts at 0' Left
action "m a: a mark" 'mark a set' -l ma
action "l: away from it" 'from mark 1.00 ms' l
action "w: closer" 'view 6.00 ms' w
action "G: to the end" '│12ms\|│11ms\|│10ms' G
action "' a: back to the mark" '^a.*│1ms' -l "'a"
action "0: all" 'view 12.0 ms' 0
action "/leaf: search" '^leaf  (app)' -l "/leaf
"
action "n: the next hit" 'starts at 2' n
action "N: the hit before" 'starts at 1' N
action "M: measure from here" 'measured so far 0' M
action "l: as far as there" 'measured so far 1.00 ms' l
action "M: done" 'measured 1.00 ms (1000000 ns)' M
action "n: the measure goes" 'view 12.0 ms' n
colours=-e
action "f: its function stands out" '48;5;244m main' f
gone "f: all alike again" '48;5;244m main' f
colours=
action "i: details" 'called by *work < main' i
gone "i: fewer" 'called by' i
action "w: closer" 'view 6.00 ms' w
action "S: the stalls" 'stalls: 2 rows' S
action "j, Enter: to the second" '│11ms' Down Enter
gone "q: the list closes" 'stalls: 2 rows' q
action "F: functions" 'functions by own time' F
gone "q: closes" 'functions by own time' q
action "c: the calls of the function" 'calls of this function' c
gone "q: closes" 'calls of this function' q
action "x: what is missing" 'gaps: 2 rows' x
gone "q: closes" 'gaps: 2 rows' q
action "H: the hits" 'search hits' H
gone "q: closes" 'search hits' q
action "e: marks of the trace" 'marks in the trace' e
gone "q: closes" 'marks in the trace' q
action "[: there is no gap before" 'no earlier gap' -l '[[['
action "w: closer" 'view 3.00 ms' w
action "]: to the next gap" '│9.5ms .*│11.5ms' ]
action "0" 'view 12.0 ms' 0
action "Tab: the next thread" '> helper 101' Tab
action "p: pinned to the top" '> \* *helper 101\|>\* helper 101' p
action "p: as before" '> helper 101' p
action "Space: the thread collapses" '+ helper 101' Space
action "Space: opens" '> helper 101' Space
action "C: all others collapse" '+ main 100' C
action "C: open" '- main 100' C
gone "K: without the kernel" '▉\[s' K
action "K: with it" '▉\[s' K
action "Tab: the next thread" '> main 100' Tab
action "S-Tab: back" '> helper 101' BTab
action "t: to the stall" 'selection 450 us' t
action ";: a question in SQL" '1 rows\|1 row' -l ";SELECT count(*) AS n FROM calls
"
gone "q: closes" '1 rows\|1 row' q
action ":zoom-out by its name" 'view 1.40 ms' -l ":zoom-out
"
action ":a word that is none" 'did you mean' -l ":zom-out
"
action ":save-display" 'saved' -l ":save-display saved.txt
"
action "?: help" 'Keys (each also' '?'
gone "any key: back" 'Keys (each also' x
action "0 again" 'view 12.0 ms' 0
action "a click selects" '^read  (libc.so.6)' -l $'\033[M <)\033[M#<)'
action "the wheel zooms" 'view 6.00 ms' -l $'\033[M`>\047'
action "and back" 'view 12.0 ms' -l $'\033[Ma>\047'
pane send-keys -t 0 C-l # nothing to see, but what follows
action "w: closer" 'view 6.00 ms' w
action "G: to the end" '│11ms\|│10ms' G
gone "g: to the start" '│11ms\|│10ms' g
action "q: the shell is there" '^[#$]$\|^[#$] *$' q
action "and takes commands" '^\([#$] \)\?still 3 here' -l "echo still \$((1 + 2)) here
"
grep -q 'known.db' saved.txt && [ "$(wc -l <saved.txt)" -eq 30 ] || { echo "FAILED: the saved screen"; failed=$((failed + 1)); }
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 60 ]
