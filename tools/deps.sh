#!/bin/sh
# deps.sh build|demo|test...: installs the Debian packages that building, the demo or the tests need and that are missing.
# Without root it prints the command to run and ends with status 1.
set -eu

build="gcc g++ clang llvm bpftool cmake ninja-build pkg-config libipt-dev libbpf-dev libelf-dev libdw-dev libsqlite3-dev
libzydis-dev libncurses-dev libzstd-dev libcmocka-dev libiberty-dev uthash-dev libseccomp-dev zlib1g-dev libmicrohttpd-dev"
demo="linux-perf procps util-linux"
test="$demo nginx-light haproxy libboost-context-dev golang-go ocaml-nox zstd libclang-rt-14-dev clang-format iperf3 iproute2 socat bpftrace tmux sqlite3 python3 git strace
man-db jq curl time chromium python3-protobuf libdevel-nytprof-perl postgresql python3-pyside2.qtsql"

# Where node comes from elsewhere it has npm with it, and Debian's would not go with it.
command -v npm >/dev/null || test="$test nodejs npm"

wanted=""
for group in "$@"; do
    case $group in
    build) wanted="$wanted $build" ;;
    demo) wanted="$wanted $demo" ;;
    test) wanted="$wanted $test" ;;
    *) echo "deps.sh: no group '$group' (build, demo, test)" >&2; exit 2 ;;
    esac
done

missing=""
for package in $wanted; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
    echo "Missing packages. Install them with: sudo apt-get install$missing" >&2
    exit 1
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq || echo "deps.sh: apt-get update failed; trying with the package lists as they are" >&2
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null
