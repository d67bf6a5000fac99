#!/bin/bash
# --prometheus PORT: connections that say nothing keep nobody out.
exec python3 "$(dirname "$0")/http_silent.py"
