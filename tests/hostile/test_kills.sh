#!/bin/bash
# SIGKILL of each process of arm's tree: the target lives, and nothing stays. MOMENTS: how many (make hostile: 500).
exec python3 "$(dirname "$0")/kills.py" "${MOMENTS:-10}"
