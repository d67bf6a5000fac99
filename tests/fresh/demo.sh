#!/bin/bash
# demo.sh SUITE: `make demo` in a fresh clone on a fresh machine, and nothing else.
. "$(dirname "$0")/lib.sh"
fresh_root "$1" "$1-demo"
put_source /root/stalltrap
log=$BUILD/fresh/$1-demo.log
inside make -C /root/stalltrap JOBS=2 demo >"$log" 2>&1 || { tail -60 "$log"; die "make demo ends with an error"; }
grep -q '^trap 1: thread .* "forwarder" off-CPU' "$log" || { tail -60 "$log"; die "the demo caught no stall"; }
