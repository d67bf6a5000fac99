#!/bin/bash
# Allocations and system calls that fail, one a run: one of each command, and what has found a fault; FAULTS=all: every one (make hostile).
exec python3 "$(dirname "$0")/faults.py" ${FAULTS:+"$FAULTS"} "$@"
