#!/bin/bash
# parsers.table and the source agree: each file that takes bytes in stands in it, nothing stands in it that is not there, each target reads
# something, has inputs to begin with, and a dictionary or a reason to have none.
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
fuzz=tests/fuzz
calls='fgets|getline|getdelim|fscanf|fread|pread|read|recv|recvmsg|elf_begin|elf_memory|dwarf_begin_elf|dwfl_begin|sqlite3_open_v2|MHD_start_daemon|mmap|ZSTD_decompressStream|pt_[a-z]+_alloc_decoder'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
complain() { # WHAT < lines
    local lines
    lines=$(cat)
    [ -z "$lines" ] && return
    printf 'FAILED: %s:\n%s\n' "$1" "$lines" >&2
    touch "$work/failed" # it runs behind a pipe: a variable would not outlive it
}

find base decoder perfdata recorder tracedb triggers -name '*.c' ! -name '*.bpf.c' -exec grep -lE "(^|[^A-Za-z_0-9>.\"])($calls)\(" {} + | sort >"$work/read"
grep -v '^#' $fuzz/parsers.table | awk '{print $1}' | sort >"$work/listed"
grep -v '^#' $fuzz/parsers.table | awk '$2 != "-" {print $2}' | sort -u >"$work/used"
$fuzz/seeds.sh --targets | sort >"$work/targets"
[ "$(wc -l <"$work/read")" -gt 40 ] || echo "only $(wc -l <"$work/read") were found" | complain "the search for files that take bytes in"
comm -23 "$work/read" "$work/listed" | complain "these take bytes in and are not in $fuzz/parsers.table"
uniq -d "$work/listed" | complain "these stand twice in $fuzz/parsers.table"
while read -r file; do [ -f "$file" ] || echo "$file"; done <"$work/listed" | complain "these stand in $fuzz/parsers.table and are not there"
comm -13 "$work/targets" "$work/used" | complain "these targets of $fuzz/parsers.table have no fuzz_TARGET.c"
comm -23 "$work/targets" "$work/used" | complain "these targets read nothing that $fuzz/parsers.table knows of"
grep -v '^#' $fuzz/parsers.table | awk '$2 == "-" && !($3 ~ /^(KERNEL|OWN|USER):$/ || $3 ~ /^tests\//)' | complain "these have no target and no reason"
grep -v '^#' $fuzz/parsers.table | awk '$2 == "-" && $3 ~ /^tests\// {print $3}' | tr -d ':,' | while read -r test; do [ -e "$test" ] || echo "$test"; done |
    complain "these tests of $fuzz/parsers.table are not there"
for target in $(cat "$work/targets"); do
    grep -q "^$target)" $fuzz/seeds.sh || echo "$target"
done | complain "these have no inputs to begin with in $fuzz/seeds.sh"
for target in $(cat "$work/targets"); do
    [ "$target" = flow ] || [ -s "$fuzz/dict/$target.dict" ] || echo "$target" # packets have no words
done | complain "these have no dictionary in $fuzz/dict"
[ ! -e "$work/failed" ] || exit 1
echo "$(wc -l <"$work/listed") files, $(wc -l <"$work/targets") targets"
