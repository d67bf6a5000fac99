#!/bin/bash
# Names that hold anything, in the pictures of `export`: the SVG is well-formed XML, the page has no character that HTML forbids, its data
# is JSON and nothing in it ends the script; and the name can still be told.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
cd "$work" || exit 1

# Non-characters, lone surrogates, cut and overlong UTF-8, controls, what ends XML's and HTML's parts. A NUL ends a name.
cat >names.sql <<'END'
PRAGMA application_id = 0x73746c74;
INSERT INTO process (id, pid, name) VALUES (1, 1, 'p');
INSERT INTO module (id, name, path, kernel) VALUES (1, 'm' || char(65535) || ']]>' || CAST(x'eda080' AS TEXT), '/m', 0);
CREATE TEMP TABLE bad (id INTEGER PRIMARY KEY, name);
INSERT INTO bad (name) VALUES (char(65535)), (char(65534)), (char(64976)), (char(1114111)), (char(131070)), (CAST(x'eda080' AS TEXT)), (CAST(x'edbfbf' AS TEXT)),
    (CAST(x'efbf' AS TEXT)), (CAST(x'c080' AS TEXT)), (CAST(x'f8888080' AS TEXT)), (CAST(x'ff' AS TEXT)), (char(1)), (char(8)), (char(11)), (char(12)), (char(27) || '[31m'),
    (char(127)), (char(133)), (char(155)), (char(8232)), (char(13)), (char(10)), (']]>'), ('<![CDATA['), ('</script><b>'), ('<!--'), ('-->'), ('&#0;'), ('&amp;'), ('''"');
INSERT INTO thread (id, process_id, tid, name) SELECT id, 1, id, 't' || name FROM bad;
INSERT INTO symbol (id, module_id, name, address, size) SELECT id, 1, 'begin' || name || 'end', id, 1 FROM bad;
INSERT INTO call (id, thread_id, symbol_id, parent_id, depth, start_ns, duration_ns, self_ns, flags) SELECT id, id, id, NULL, 0, 0, 1000000, 1000000, 0 FROM bad;
INSERT INTO gap (id, thread_id, start_ns, end_ns, reason, detail) SELECT id, id, 0, 500000, 'truncated', 'd' || name FROM bad;
INSERT INTO mark (id, name, time_ns) SELECT id, 'k' || name, 5 FROM bad;
END
{ echo "PRAGMA user_version = 1;"; cat "$SOURCE/tracedb/schema.sql" names.sql "$SOURCE/tracedb/indexes.sql"; } | sqlite3 names.db || exit 1
failed=0
expect() { # WHAT COMMAND...
    local what=$1
    shift
    "$@" && return
    echo "FAILED: $what"
    failed=1
}

for format in svg html chrome speedscope folded perfetto; do
    expect "export to $format" "$STALLTRAP" export names.db --to $format -o names.$format
done
expect "the SVG is well-formed" xmllint --noout --nonet names.svg
expect "every thread is in it" [ "$(grep -c '<text class="who"[^>]*>t' names.svg)" = 30 ]
expect "a non-character can be told" grep -q 'begin\\xef\\xbf\\xbfend' names.svg
expect "] ] > is text" grep -q 'begin]]&gt;end' names.svg
for format in chrome speedscope; do
    expect "$format is JSON" python3 -m json.tool names.$format /dev/null
done
"$STALLTRAP" query names.db 'SELECT name FROM symbol ORDER BY id' --format json >names.json || failed=1
python3 - <<'END' || failed=1
import html.parser
import json
import sys

text = open("names.html", encoding="utf-8").read()  # fails where it is no UTF-8
bad = sorted({c for c in map(ord, text) if c < 32 and c != 10 or 0x7F <= c < 0xA0 or 0xFDD0 <= c <= 0xFDEF or c & 0xFFFE == 0xFFFE})
if bad:
    sys.exit(f"FAILED: the page has characters that HTML forbids: {list(map(hex, bad))}")


class Page(html.parser.HTMLParser):
    scripts, inside = [], False

    def handle_starttag(self, tag, attributes):
        self.inside = tag == "script"
        if tag == "b":
            sys.exit("FAILED: a name became an element")
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


page = Page()
page.feed(text)
script = next(s for s in page.scripts if '"symbols":[' in s)
trace, _ = json.JSONDecoder().raw_decode(script[script.index('{"from"'):])
names = [s[0] for s in trace["symbols"]]
for name in "\uffff", "\U0010ffff", "</script><b>", "]]>":
    if f"begin{name}end" not in names:
        sys.exit(f"FAILED: the page has no function {name!r}: {names}")
if [r["name"] for r in json.load(open("names.json"))][:5] != [f"begin{chr(c)}end" for c in (65535, 65534, 64976, 1114111, 131070)]:
    sys.exit("FAILED: --format json changes names")
END
[ $failed = 0 ] && echo "all names are shown"
