#!/bin/bash
# What npm's packages make of a trace: sql.js answers the README's queries, ajv finds the speedscope export valid by speedscope's own
# schema and a wrong file not. The packages are installed once into the build folder. Skipped (77) where npm's registry cannot be reached.
set -u
here=$SOURCE/tests/golden/viewer
packages=$BUILD/tests/npm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
command -v npm >/dev/null && command -v node >/dev/null || { echo "SKIPPED: there is no npm"; exit 77; }
mkdir -p "$packages"
if ! [ -d "$packages/node_modules/sql.js" ] || ! [ -d "$packages/node_modules/speedscope" ] || ! [ -d "$packages/node_modules/ajv" ]; then
    timeout 60 npm install --prefix "$packages" --fetch-retries 1 --fetch-retry-mintimeout 1000 --fetch-timeout 20000 --no-audit --no-fund --ignore-scripts sql.js@1 speedscope@1 ajv@8 >"$work/npm.log" 2>&1 ||
        { tail -3 "$work/npm.log"; echo "SKIPPED: npm's registry cannot be reached"; exit 77; }
fi
cd "$work" || exit 1
{ echo "PRAGMA user_version = 2;"; cat "$SOURCE/tracedb/schema.sql" "$here/known.sql" "$SOURCE/tracedb/indexes.sql"; } | sqlite3 known.db
"$BUILD/tests/bench/make_trace" made.db 20000 3 || exit 1
sqlite3 empty.db <<<"PRAGMA application_id = 0x73746c74; PRAGMA user_version = 1;"
sqlite3 empty.db <"$SOURCE/tracedb/schema.sql"
for name in known made empty; do
    "$STALLTRAP" export $name.db --to speedscope -o $name.speedscope || exit 1
done
NODE_PATH=$packages/node_modules node "$here/packages.js" "$SOURCE/README.md" "$STALLTRAP"
