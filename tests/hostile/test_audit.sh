#!/bin/bash
# The reproductions of an audit, which are beside the source tree and no part of it: none of them reproduces what it was written for.
exec python3 "$(dirname "$0")/audit.py" "$@"
