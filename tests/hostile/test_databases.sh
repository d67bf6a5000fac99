#!/bin/bash
# Databases that were made to hurt who reads them.
exec python3 "$(dirname "$0")/databases.py"
