#!/bin/bash
# arm does not grow with what it has done. SOAK: seconds a source (make hostile: 45, make soak: 3600).
exec python3 "$(dirname "$0")/soak.py" "${SOAK:-4}"
