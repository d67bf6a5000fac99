#!/bin/bash
# The manual pages: one a command, the options of each are those that its --help lists, and groff has nothing to complain of. The
# documents that one leads to are there.
set -u
. "$SOURCE/tests/cli/lib.sh"
pages=$SOURCE/docs/man

"$STALLTRAP" --help >help || fail "--help ends with $?"
commands=$(sed -n 's/^  stalltrap \([a-z]*\) .*/\1/p' help)
[ "$(wc -w <<<"$commands")" -ge 8 ] || fail "--help lists no commands" help

help_options() { # COMMAND: -x and --xyz, a line each
    "$STALLTRAP" "$1" --help | sed -nE 's/^  +((-[a-z], )?--[a-z-]+).*/\1/p' | tr -s ', ' '\n'
}
page_options() { # COMMAND: those in the tags of the section OPTIONS
    sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/p' "$pages/stalltrap-$1.1" | sed -n '/^\.TP/{n;p}' | sed 's/\\-/-/g; s/^\.B//' |
        grep -oE '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,'
}

for command in $commands; do
    [ -e "$pages/stalltrap-$command.1" ] || fail "$command has no manual page"
    help_options "$command" | sort >in-help
    page_options "$command" | sort >in-page
    [ -s in-help ] || fail "$command --help lists no options"
    diff in-help in-page >differences || fail "options of $command: in --help (<) and in the manual page (>)" differences
    grep -q "stalltrap-$command(1)" "$pages/stalltrap.1" || fail "stalltrap.1 does not lead to stalltrap-$command(1)"
done
for page in "$pages"/stalltrap-*.1; do
    command=$(basename "$page" .1)
    grep -qx "${command#stalltrap-}" <<<"$commands" || fail "$page: there is no such command"
done

for page in "$pages"/*.1; do
    MANROFFSEQ='' man --warnings -E UTF-8 -l -Tutf8 -Z "$page" >formatted 2>complaints || fail "man ends with $?" complaints
    [ -s formatted ] && [ ! -s complaints ] || fail "$page is not clean" complaints
done

for document in $(grep -ohE 'docs/[a-z-]+\.md' "$SOURCE/README.md" "$SOURCE"/docs/*.md "$pages"/*.1 | sort -u); do
    [ -s "$SOURCE/$document" ] || fail "$document is named, but is not there"
done
