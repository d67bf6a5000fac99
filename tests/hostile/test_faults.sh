#!/bin/bash
# Allocations and system calls that fail, one a run. A sample; FAULTS=all: every one (make hostile).
exec python3 "$(dirname "$0")/faults.py" "${FAULTS:-20}" "$@"
