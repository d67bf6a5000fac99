#!/bin/bash
# No half file stays of a decoding that was ended from outside.
exec python3 "$(dirname "$0")/leftovers.py"
