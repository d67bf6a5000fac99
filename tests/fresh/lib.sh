# What the tests of a fresh machine share: a new Debian in a folder, from the mirror in this machine's own apt sources. Sourced by bash.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C.UTF-8
: "${SOURCE:?the source tree}" "${BUILD:?the build folder}"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/stalltrap-fresh

skip() {
    echo "SKIP: $*"
    exit 77
}
die() {
    echo "FAILED: $*" >&2
    exit 1
}
[ "$(id -u)" = 0 ] || skip "a fresh machine is made by root"

# The packages of each kind of base, the only input of its recipe besides base.sh.
packages_build() { echo make; "$SOURCE/tools/deps.sh" --list build; } # the Makefile's build group
packages_plain() { :; }                                            # nothing
packages_package() { # what debian/ asks for to build the package and to try it, and what looks at the result
    sed -n '/^Build-Depends:/,/^$/{s/^ \([a-z0-9+.-]*\).*/\1/p}' "$SOURCE/debian/control" | sed 's/^debhelper-compat$/debhelper/'
    sed -n 's/^Depends: @, //p' "$SOURCE/debian/tests/control" | tr -d ,
    echo build-essential lintian autopkgtest bash-completion zsh fish
}

base_tarball() { # SUITE GROUP
    local key
    key=$({ "packages_$2"; cat "$SOURCE/tests/fresh/base.sh"; } | sha256sum | cut -c1-12)
    echo "$cache/$1-$2-$key.tar.zst"
}

# Unpacks the base of a suite into the new folder $root, which goes at the end with what still runs in it.
fresh_root() { # SUITE NAME [GROUP]
    local tarball group=${3:-build}
    tarball=$(base_tarball "$1" "$group")
    [ -e "$tarball" ] || die "there is no $tarball; tests/fresh/base.sh $1 $group makes it"
    mkdir -p "$BUILD/fresh"
    root=$(realpath "$BUILD/fresh")/$2
    remove_root
    mkdir "$root"
    trap remove_root EXIT
    trap 'exit 1' INT TERM
    zstd -dcq "$tarball" | tar -C "$root" -xf -
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
}

remove_root() {
    local link
    for link in /proc/[0-9]*/root; do
        case $(readlink "$link" 2>/dev/null) in
        "$root" | "$root"/*) kill -KILL "$(basename "$(dirname "$link")")" 2>/dev/null || true ;;
        esac
    done
    rm -rf --one-file-system "$root"
}

# The source tree as a clone has it: what git knows of it and what it does not ignore.
put_source() { # FOLDER IN THE ROOT
    mkdir -p "$root$1"
    (cd "$SOURCE" && git -c safe.directory='*' ls-files -co --exclude-standard -z | tar -cf - --null --ignore-failed-read -T - 2>/dev/null) | tar -C "$root$1" -xf -
    [ -e "$root$1/Makefile" ] || die "the source tree could not be copied"
}

# Runs a command in $root, in a mount name space of its own. UPTIME is the age that the machine shall have, in seconds.
# Triggers do not work in a pid name space, so there is none.
inside() { # COMMAND...
    local clock=()
    if [ -n "${UPTIME:-}" ]; then
        local offset=$((UPTIME - $(cut -d. -f1 /proc/uptime)))
        clock=(--time --boottime "$offset" --monotonic "$offset")
    fi
    # shellcheck disable=SC2016
    unshare --mount "${clock[@]}" --fork --kill-child bash -ec '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        # As systemd does on a Debian that was booted.
        mountpoint -q "$root/sys/kernel/tracing" || mount -t tracefs tracefs "$root/sys/kernel/tracing"
        mount --rbind /dev "$root/dev"
        exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb ${http_proxy:+"http_proxy=$http_proxy"} chroot "$root" "$@"' \
        inside "$root" "$@"
}
