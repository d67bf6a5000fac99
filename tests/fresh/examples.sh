#!/bin/bash
# In the fresh machine: each example of the installed manual pages and documents runs as it is written; examples.table says what stands for
# the names in them. An `arm` or `watch` that waits is told Ctrl-C when it is armed. `one FOLDER EXAMPLE DOCUMENT` runs one of them.
set -uo pipefail
set -m # a job then has its own process group, and Ctrl-C means something to it
here=$(dirname "$(realpath "$0")")
documents=(/usr/local/share/man/man1/*.1 /usr/local/share/doc/stalltrap/*.md)

manual_examples() { # PAGE
    sed -n '/^\.SH EXAMPLE/,/^\.SH [^E]/{/^\.EX/,/^\.EE/p}' "$1" | sed 's/\\-/-/g; s/\\e/\\/g' | grep -E '^(stalltrap|perf) '
}
document_examples() { # FILE: commands, and SQL as one
    sed -nE 's/^    ((\$ |sudo )?(stalltrap (arm|snap|watch|decode|view|query|report|export|doctor)|sqlite3)( [^:].*|$))/\1/p' "$1"
    sed -nE 's/^    (SELECT )/\1/p; /^    SELECT /!{s/^    ((FROM|JOIN) .*)/ \1/p}' "$1" |
        awk '/^ /{printf "%s", $0; next} {if (NR > 1) print ""; printf "%s", $0} END{print ""}' |
        sed -nE 's/;? *$//; s/.+/stalltrap query stalltrap.1.db "&"/p'
}
all_examples() { # EXAMPLE and DOCUMENT in turn, each example once
    local document
    for document in "${documents[@]}"; do
        case $document in
        *.1) manual_examples "$document" ;;
        *) document_examples "$document" ;;
        esac | sed "s~$~\t$(basename "$document")~"
    done | awk -F'\t' '!seen[$1]++ { printf "%s%c%s%c", $1, 0, $2, 0 }'
}

wait_for() { # SECONDS COMMAND...
    local i
    for ((i = 0; i < $1 * 20; i++)); do
        "${@:2}" && return
        sleep 0.05
    done
    return 1
}
gone() { ! kill -0 "$1" 2>/dev/null; }
live_or_gone() { # JOB
    grep -Eqs '^(armed:|watching)' err || gone "$1"
}

# Runs one in the current folder; $status is its exit status, 124 if it did not end.
run() { # COMMAND
    bash -c "$1" >out 2>err </dev/null &
    local job=$!
    case $1 in
    *'stalltrap arm '* | *'stalltrap watch '*)
        wait_for 120 live_or_gone $job
        # A command of its own ends by itself.
        case $1 in *' -- '*) ;; *) kill -INT -- "-$job" 2>/dev/null ;; esac
        ;;
    esac
    if wait_for 300 gone $job; then
        wait $job
        status=$?
    else
        kill -KILL -- "-$job"
        status=124
    fi
}

one() { # EXAMPLE DOCUMENT
    local command=$1 may='' kind pattern text
    while IFS=$'\t' read -r kind pattern text; do
        case $kind in
        is) command=$(sed -E "s~$pattern~${text//&/\\&}~g" <<<"$command") ;;
        without) ! grep -Eq -e "$pattern" <<<"$1" || { echo "left out ($text): $1"; return 0; } ;;
        may) ! grep -Eq -e "$pattern" <<<"$1" || may=$text ;;
        esac
    done < <(grep -v '^#' "$here/examples.table")
    mkdir "$folder/$$" && cd "$folder/$$" || return 1
    for name in stalltrap.1 t known before after; do
        cp ../known.1.db $name.db
    done
    cp ../stepped.1.data stalltrap.1.data
    cp "$here/yields.o" .
    cp yields.o 'my rules.o'
    case $command in *'--source step'*) exec 8>../stepping && flock 8 ;; esac # one tracer at a time
    run "$command" 8>&-
    if [ $status = 3 ] && [ -n "$may" ]; then
        echo "not here ($may): $1"
    elif [ $status != 0 ]; then
        { echo "FAILED with $status: $1 ($2)"; echo "  run as: $command"; tail -n 5 out err | sed 's/^/  /'; } >../report.$$
        cat ../report.$$
        return 1
    fi
    cd .. && rm -rf "${folder:?}/$$"
}

if [ "${1:-}" = one ]; then
    folder=$2
    one "$3" "$4"
    exit
fi

work=$(mktemp -d)
cd "$work" || exit 1
forwarder= server= for_snap=
trap 'kill -KILL $forwarder $server $for_snap 2>/dev/null; rm -rf "$work"' EXIT
cc -g -O1 -fno-omit-frame-pointer -shared -fPIC "$here/libfoo.c" -o /usr/lib/libfoo.so &&
    cc -g -O1 -fno-omit-frame-pointer "$here/forwarder.c" -lfoo -o /usr/local/bin/forwarder || exit 1
forwarder 2>/dev/null &
forwarder=$!
mkdir -p '/opt/my app'
cp /usr/local/bin/forwarder '/opt/my app/server'
'/opt/my app/server' 2>/dev/null &
server=$!
# Whatever else runs on the machine that this root is on.
printf '#!/bin/sh\ncase $1 in server) echo %s ;; *) echo %s ;; esac\n' $server $forwarder >/usr/local/bin/pidof
chmod 755 /usr/local/bin/pidof

# What the examples look at.
stalltrap arm --source sample -p $forwarder -o known >out 2>err </dev/null &
recorder=$!
wait_for 120 live_or_gone $recorder
sleep 2
kill -INT $recorder
wait $recorder || { cat err; exit 1; }
echo 'int f(int i) { return i + 1; } int main(int n, char **v) { (void)v; return f(n) - 2; }' >tiny.c
cc -O0 -static tiny.c -o tiny && stalltrap arm --source step -o stepped -q -- ./tiny >out 2>&1 || { cat out; exit 1; }
stalltrap arm --source sample -p $forwarder --snapshots 0 -q >snap.out 2>&1 & # for snap
for_snap=$!

all_examples >examples
count=$(($(tr -cd '\0' <examples | wc -c) / 2))
echo "$count examples"
[ "$count" -ge 60 ] || exit 1
xargs -0 -n 2 -P 3 bash "$0" one "$work" <examples
