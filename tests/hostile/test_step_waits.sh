#!/bin/bash
# step: what waits in a target is not woken by an arm that never came to record it.
exec python3 "$(dirname "$0")/step_waits.py"
