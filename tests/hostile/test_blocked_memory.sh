#!/bin/bash
# A target that lets nobody read its memory does not hold up arm.
exec python3 "$(dirname "$0")/blocked_memory.py"
