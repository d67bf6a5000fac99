#!/bin/bash
# The page of `export --to html` in a real browser: zoomed, moved, searched and clicked as a user would; what it shows afterwards is
# compared with tests/golden/viewer/page.txt. UPDATE=1 writes a new expectation.
set -u
here=$SOURCE/tests/golden/viewer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
cd "$work" || exit 1

{ echo "PRAGMA user_version = 1;"; cat "$SOURCE/tracedb/schema.sql" "$here/known.sql" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 known.db
"$STALLTRAP" export known.db --to html -o known.html || exit 1
/usr/bin/python3 - known.html "$here/page_actions.js" <<'PYEND' || exit 1
import sys
page, actions = (open(f, encoding="utf-8").read() for f in sys.argv[1:])
head, tail = page.rsplit("</script>", 1)
open("driven.html", "w", encoding="utf-8").write(head + actions + "</script>" + tail)
PYEND
timeout 100 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size=1000,600 --dump-dom "file://$work/driven.html" >dom.html 2>browser.err ||
    { echo "the browser ended with $?"; tail -5 browser.err; exit 1; }
sed -n '/<pre id="seen">/,/<\/pre>/p' dom.html | sed 's/<[^>]*>//g;/^$/d' >page.out
if [ -n "${UPDATE:-}" ]; then
    cp page.out "$here/page.txt"
elif ! diff -u "$here/page.txt" page.out; then
    echo "0 passed, 1 failed"
    exit 1
fi
echo "$(wc -l <page.out) passed, 0 failed"
