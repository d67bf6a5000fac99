#!/bin/bash
# Screens at 80x24 and 200x60 in UTF-8, in ASCII and in the colours of four kinds of terminals; see viewer/screens.py.
set -u
here=$SOURCE/tests/golden/viewer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
unset COLUMNS LINES COLORTERM TMUX
{ echo "PRAGMA user_version = 2;"; cat "$SOURCE/tracedb/schema.sql" "$here/known.sql" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 "$work/known.db"
/usr/bin/python3 "$here/screens.py" "$STALLTRAP" "$work/known.db" "$here" "$SOURCE/docs/viewer.md"
