#!/bin/bash
# Whoever owns a folder may put another file in the place of a name between two looks at it: what looks something up by a path stands in a list,
# with the reason why that is safe there.
calls='open|fopen|openat|creat|opendir|scandir|mkdir|mkdtemp|mkstemp|mkostemp|rename|link|symlink|unlink|rmdir|remove|nftw|truncate|chmod|chown|stat|lstat|access|sqlite3_open_v2|elf_begin'
cd "$SOURCE" || exit 1
list=tests/hostile/open_by_path.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -oEH "^[^/\"]*[^a-z0-9_>.\"]($calls)\(.*" base/folder.c base/infile.c base/outfile.c base/spool.c perfdata/*.c decoder/*.c tracedb/descriptor.c tracedb/writer.c \
    recorder/code_files.c recorder/kcore.c recorder/decode_child.c recorder/snapshot_room.c |
    sed -E "s/^([^:]*):[^/\"]*[^a-z0-9_>.\"](($calls))\(.*/\1 \2/" | sort -u >"$work/found"
grep -v '^#' $list | cut -d' ' -f1,2 | sort -u >"$work/listed"
[ "$(wc -l <"$work/found")" -gt 15 ] || { echo "FAILED: only $(wc -l <"$work/found") calls were found" >&2; exit 1; }
new=$(comm -23 "$work/found" "$work/listed")
[ -z "$new" ] && echo "all of $(wc -l <"$work/found") are in the list" && exit 0
echo "FAILED: these look something up by a path and are not in $list; use base/infile.h or base/folder.h:" >&2
echo "$new" >&2
exit 1
