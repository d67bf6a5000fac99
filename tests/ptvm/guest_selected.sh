# guest_selected.sh SOURCE BUILD: what is recorded of CPU-wide events, on this kernel.
export SOURCE=$1 STALLTRAP=$2/stalltrap BUILD=$PTVM_OUT/build HOME=$PTVM_OUT
mkdir -p "$BUILD/tests"
cd "$PTVM_OUT"
exec bash "$SOURCE/tests/cli/test_selected.sh"
