#!/bin/bash
# Files that become shorter while they are read.
exec python3 "$(dirname "$0")/shrinking.py"
