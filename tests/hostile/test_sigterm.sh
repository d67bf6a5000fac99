#!/bin/bash
# SIGTERM ends arm within a second, however many snapshots wait to be decoded, and says which were not.
exec python3 "$(dirname "$0")/sigterm.py"
