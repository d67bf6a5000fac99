#!/bin/bash
# SIGKILL of each process of arm's tree in each phase: the target lives, and nothing stays. MOMENTS: how many (make hostile: 500); else each once.
exec python3 "$(dirname "$0")/kills.py" "${MOMENTS:-0}"
