#!/bin/bash
# Each name in the lists of tests/sort.cmake is that of a test: one that is misspelt would leave a test in the gate that does not belong there.
set -u
. "$SOURCE/tests/cli/lib.sh"

ctest --test-dir "$BUILD" -N | sed -n 's/^ *Test *#[0-9]*: //p' >names
[ "$(wc -l <names)" -gt 200 ] || fail "there are no tests" names
python3 - "$SOURCE/tests/sort.cmake" names >wrong <<'END'
import re
import sys

def alternatives(pattern):
    """Each pattern that one with (A|B) stands for."""
    group = re.search(r"\(([^()]*)\)", pattern)
    if not group:
        return [pattern]
    return [p for word in group[1].split("|") for p in alternatives(pattern[:group.start()] + word + pattern[group.end():])]

names = open(sys.argv[2]).read().split()
patterns = re.findall(r'"(\^[^"]+)"', open(sys.argv[1]).read().split("function(", 1)[0])
assert len(patterns) > 10, patterns
for pattern in sum(map(alternatives, patterns), []):
    if not any(re.search(pattern, name) for name in names):
        print(pattern)
END
[ $? -eq 0 ] && [ ! -s wrong ] || fail "tests/sort.cmake names tests that are not there" wrong
