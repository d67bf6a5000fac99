#!/bin/bash
# Builds every fuzz target with the compiler and engine of the caller, as OSS-Fuzz asks for: CC, CXX, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE, OUT,
# and WORK for what is in between. Each goes to $OUT with its seeds (TARGET_seed_corpus.zip, or a folder where there is no zip) and its
# dictionary. Without LIB_FUZZING_ENGINE a target runs the files that it is given, once (standalone.c): any compiler builds that.
# usage: OUT=FOLDER [CC=...] [CFLAGS=...] [LIB_FUZZING_ENGINE=...] build.sh [TARGET...]
set -eu
here=$(dirname "$(realpath "$0")")
source=$(realpath "$here/../..")
mkdir -p "${OUT:?the folder that the programs go to}"
OUT=$(realpath "$OUT")
WORK=${WORK:-$OUT/work}
mkdir -p "$WORK"
engine=${LIB_FUZZING_ENGINE:-}
if [ -z "$engine" ]; then
    ${CC:-cc} ${CFLAGS:-} -D_GNU_SOURCE -c "$here/standalone.c" -o "$WORK/standalone.o"
    engine=$WORK/standalone.o
fi
[ $# -gt 0 ] || set -- $("$here/seeds.sh" --targets)
cmake -S "$source" -B "$WORK/build" -G Ninja -DCMAKE_BUILD_TYPE=None -DST_FUZZ_ENGINE="$engine" >"$WORK/cmake.log" || { cat "$WORK/cmake.log" >&2; exit 1; }
cmake --build "$WORK/build" --target $(printf 'fuzz_%s ' "$@") perfdata_seeds flow_seeds elf_seed elf_seed_program dwarf_seed_4 dwarf_seed_5
programs=$WORK/build/tests/fuzz
for target; do
    cp "$programs/fuzz_$target" "$OUT"
    [ ! -f "$here/dict/$target.dict" ] || cp "$here/dict/$target.dict" "$OUT/fuzz_$target.dict"
    seeds=$OUT/fuzz_${target}_seed_corpus
    rm -rf "$seeds" "$seeds.zip"
    mkdir "$seeds"
    "$here/seeds.sh" "$target" "$programs" "$seeds"
    if command -v zip >/dev/null; then
        zip -q -j -r "$seeds.zip" "$seeds"
        rm -r "$seeds"
    fi
done
