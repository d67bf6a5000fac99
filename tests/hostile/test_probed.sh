#!/bin/bash
# step: a function with a breakpoint of ours in it does not end the target.
exec python3 "$(dirname "$0")/probed.py"
