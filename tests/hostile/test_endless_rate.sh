#!/bin/bash
# arm --snapshots 0 traps no oftener than it says, and snapshots do not grow with the time that it was armed.
exec python3 "$(dirname "$0")/endless_rate.py"
