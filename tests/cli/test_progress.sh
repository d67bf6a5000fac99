#!/bin/bash
# Long work says how far it is: on a terminal, on stderr, one line that is gone at the end; nowhere else.
set -u
. "$SOURCE/tests/cli/lib.sh"
unset STALLTRAP_PROGRESS

# COMMAND... with stderr a terminal, whose text goes to stderr.txt, and stdout a file, out.txt. $? is the command's.
on_terminal() {
    python3 - "$@" <<'EOF'
import os, pty, subprocess, sys, threading
master, slave = pty.openpty()
with open("out.txt", "wb") as out, open("stderr.txt", "wb") as err:
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=out, stderr=slave)
    os.close(slave)
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        err.write(data)
    sys.exit(command.wait())
EOF
}

shows() { # WHAT...: the line told of each, and was gone at the end
    local what
    for what; do
        grep -aqE "$what: [0-9]+ (%|s)" stderr.txt || fail "no progress of '$what'" stderr.txt
    done
    python3 - <<'EOF' || fail "a line of progress is left" stderr.txt
import re
text = open("stderr.txt", encoding="utf-8", errors="replace", newline="").read()
for line in text.replace("\r\n", "\n").split("\n"):  # what stands on each line in the end
    rest = line.split("\r")[-1]
    if re.search(r": \d+ (%|s)", rest):
        raise SystemExit(f"left: {line!r}")
    if "\r" in line and not rest.startswith("\x1b[K"):
        raise SystemExit(f"not cleared: {line!r}")
EOF
}

silent() { # what
    ! grep -aqE ': [0-9]+ (%|s)|\[K' stderr.txt || fail "$1: progress all the same" stderr.txt
}

# At once, so that short work shows it too. What arm's own decoding shows goes the same way.
STALLTRAP_PROGRESS=0 on_terminal "$STALLTRAP" arm --source step --ring 16M -o x -- "$programs/inlined" || fail "arm ends with $?" stderr.txt
shows 'writing the snapshot' decoding
STALLTRAP_PROGRESS=0 on_terminal "$STALLTRAP" decode x.1.data -f -o t.db || fail "decode ends with $?" stderr.txt
shows reading decoding writing
grep -q '^wrote t.db' out.txt || fail "the result is not on stdout" out.txt
for option in --threads=2 --reference; do
    STALLTRAP_PROGRESS=0 on_terminal "$STALLTRAP" decode x.1.data --stats $option || fail "decode --stats ends with $?" stderr.txt
    shows reading decoding
    python3 -c 'import json; json.load(open("out.txt"))' || fail "--stats is no JSON" out.txt
done
STALLTRAP_PROGRESS=0 on_terminal "$STALLTRAP" decode x.1.data --dump calls || fail "decode --dump ends with $?" stderr.txt
shows decoding
STALLTRAP_PROGRESS=0 on_terminal "$STALLTRAP" export t.db --to perfetto -o out.perfetto || fail "export ends with $?" stderr.txt
shows exporting
STALLTRAP_PROGRESS=0 on_terminal "$STALLTRAP" report t.db top || fail "report ends with $?" stderr.txt
shows 'report top'
grep -q main out.txt || fail "the report is not on stdout" out.txt

# A failure clears the line before it speaks.
head -c 20000 x.1.data >cut.data
STALLTRAP_PROGRESS=0 on_terminal "$STALLTRAP" decode cut.data && fail "a file that was cut is decoded"
shows reading
tr '\r' '\n' <stderr.txt | grep -q '^.\[K.*stalltrap decode: ' || fail "the message stands on the line of progress" stderr.txt

# Short work, work that shall not show it, and what is no terminal: nothing. What is short is this machine's matter: an hour is long.
STALLTRAP_PROGRESS=3600 on_terminal "$STALLTRAP" decode x.1.data -f -o t.db || fail "decode ends with $?" stderr.txt
silent "short work"
STALLTRAP_PROGRESS=off on_terminal "$STALLTRAP" decode x.1.data -f -o t.db || fail "decode ends with $?" stderr.txt
silent "STALLTRAP_PROGRESS=off"
STALLTRAP_PROGRESS=0 "$STALLTRAP" decode x.1.data -f -o t.db >out.txt 2>stderr.txt || fail "decode ends with $?" stderr.txt
[ ! -s stderr.txt ] || fail "progress though stderr is a file" stderr.txt

# Work that is held up: shown when a second is over, without being told to. stop and go on, so that it takes so long.
"$STALLTRAP" decode x.1.data -f -o t.db >/dev/null 2>&1
mkfifo slow
(exec 3>slow; sleep 2; cat x.1.data >&3) &
started+=($!)
on_terminal "$STALLTRAP" decode slow -f -o t.db
grep -aqE 'reading: [0-9]+ s' stderr.txt || fail "work of two seconds does not show" stderr.txt
exit 0
