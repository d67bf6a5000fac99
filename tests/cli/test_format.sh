#!/bin/bash
# Every C and C++ file of the repository is as clang-format (.clang-format) writes it: `make format` does that.
set -u
cd "$SOURCE" || exit 1
mapfile -t files < <(git ls-files '*.c' '*.h' '*.cpp')
[ "${#files[@]}" -gt 100 ] || { echo "git lists ${#files[@]} files only" >&2; exit 1; }
for file in "${files[@]}"; do
    [ ! -e "$file" ] || echo "$file"
done | xargs -d '\n' clang-format --dry-run -Werror
