#!/bin/bash
# Traps faster than snapshots can be written. FLOOD: how many stalls (make hostile: 1000).
exec python3 "$(dirname "$0")/flood.py" "${FLOOD:-100}"
