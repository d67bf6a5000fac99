#!/bin/sh
# Runs a test that needs root; without, it says so and is skipped (exit status 77).
[ "$(id -u)" = 0 ] && exec "$@"
echo "skipped: needs root: $*"
exit 77
