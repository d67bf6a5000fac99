#!/bin/bash
# arm --snapshots 0 is bounded: in what waits and on the disk; and it ends when it is told to.
exec python3 "$(dirname "$0")/endless.py"
