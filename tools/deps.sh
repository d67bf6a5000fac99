#!/bin/sh
# deps.sh build|demo|test|more|field...: installs the Debian packages that building, the demo, the gate, the tests beside it or their table of foreign programs need and that are
# missing.
# Without root it prints the command to run and ends with status 1. deps.sh --list GROUP... prints the packages' names only.
set -eu

build="gcc libc6-dev clang bpftool cmake ninja-build pkg-config libipt-dev libbpf-dev libelf-dev libdw-dev libsqlite3-dev libzydis-dev
libncurses-dev libzstd-dev libiberty-dev uthash-dev libseccomp-dev libmicrohttpd-dev"
demo="linux-perf procps util-linux"
test="$demo g++ llvm libcmocka-dev libboost-context-dev ocaml-nox zstd libclang-rt-14-dev clang-format zsh fish libxml2-utils tmux sqlite3 python3 python3-protobuf git strace
man-db locales musl-tools jq curl time libdevel-nytprof-perl"
more="iproute2 nginx-light haproxy golang-go iperf3 socat bpftrace chromium postgresql python3-pyside2.qtsql
mmdebstrap podman crun runc redis-server memcached default-jdk-headless apache2-utils"
field="mosquitto lighttpd beanstalkd mariadb-server"

# Where node comes from elsewhere it has npm with it, and Debian's would not go with it.
command -v npm >/dev/null || more="$more nodejs npm"

list=
if [ "${1:-}" = --list ]; then
    list=yes
    shift
fi
wanted=""
for group in "$@"; do
    case $group in
    build) wanted="$wanted $build" ;;
    demo) wanted="$wanted $demo" ;;
    test) wanted="$wanted $test" ;;
    more) wanted="$wanted $more" ;;
    field) wanted="$wanted $field" ;;
    *) echo "deps.sh: no group '$group' (build, demo, test, more, field)" >&2; exit 2 ;;
    esac
done

if [ -n "$list" ]; then
    # shellcheck disable=SC2086
    printf '%s\n' $wanted
    exit 0
fi

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
apt-get -o DPkg::Lock::Timeout=900 update -qq || echo "deps.sh: apt-get update failed; trying with the package lists as they are" >&2
# shellcheck disable=SC2086
apt-get -o DPkg::Lock::Timeout=900 install -y -qq --no-install-recommends $missing >/dev/null
