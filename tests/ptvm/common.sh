# common.sh: sourced by the machine's scripts: messages, where the machine is kept, and how a build of it is named.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() {
    echo "${0##*/}: $*" >&2
    exit "${PTVM_EXIT:-1}"
}

say() { echo "${0##*/}: $*" >&2; }

# The folder that holds builds of the machine.
ptvm_dir() { echo "${1:-${STALLTRAP_PTVM:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/stalltrap-ptvm}}"; }

# A build is named after what it was made from, so that it is never taken for that of another patch or recipe.
recipe_hash() { (cd "$here" && cat "$@" | sha256sum | cut -c 1-12); }

qemu_build() { echo "$1/qemu-$(recipe_hash intel-pt-tcg.patch build-qemu.sh)"; }

kernel_build() { echo "$1/kernel-$2-$(recipe_hash initramfs-init.sh build-kernel.sh)"; }

# need_packages PACKAGE...: installs those that are missing when run as root, else tells which they are.
need_packages() {
    local p missing=()
    command -v dpkg-query >/dev/null || die "this needs Debian's packages ($*), and there is no dpkg here"
    for p; do
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
    done
    [ ${#missing[@]} -eq 0 ] && return
    [ "$(id -u)" = 0 ] || die "packages are missing; as root: apt-get install ${missing[*]}"
    say "installing ${missing[*]}"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >&2 ||
        die "could not install ${missing[*]} (is there a network, and a Debian mirror in apt's sources?)"
}

# The Debian mirror in apt's sources; apt tells it only once it has the mirror's package lists.
debian_mirror() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 -E '/debian/?$'; }

# apt_suite FOLDER SUITE: a private apt state for one suite of the Debian mirror this machine uses already; the machine's own
# apt configuration is not touched. Leaves apt's options for it in the array APT.
apt_suite() {
    local folder=$1 suite=$2 mirror key=/usr/share/keyrings/debian-archive-keyring.gpg type
    mirror=$(debian_mirror) || { [ "$(id -u)" = 0 ] && apt-get update -qq && mirror=$(debian_mirror); } ||
        die "cannot fetch Debian $suite: apt has no package lists of a Debian mirror (as root: apt-get update)"
    mkdir -p "$folder"/lists/partial "$folder"/cache/archives/partial
    for type in deb deb-src; do echo "$type [signed-by=$key] $mirror $suite main"; done >"$folder/suite.list"
    APT=(-o "Dir::Etc::sourcelist=$folder/suite.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$folder/lists"
        -o "Dir::Cache=$folder/cache" -o "APT::Sandbox::User=$(id -un)" -o Acquire::Retries=3 -o APT::Update::Error-Mode=any)
    apt-get "${APT[@]}" update -qq || die "cannot fetch the package lists of Debian $suite from $mirror (no network?)"
}
