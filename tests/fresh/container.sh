#!/bin/bash
# container.sh: the image of the Containerfile is built and run by podman, without --privileged. With the capabilities of docs/deploy.md's
# table each part works on a process of this machine; without one of them just those parts do not that the table says;
# the rest of the document's command is what it says, too.
# What podman mounts goes with this name space.
[ -n "${CONTAINER_MOUNTS:-}" ] || CONTAINER_MOUNTS=1 exec unshare --mount bash "$0" "$@"
. "$(dirname "$0")/lib.sh"
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
command -v podman >/dev/null || skip "podman is not installed"
document=$SOURCE/docs/deploy.md
log=$BUILD/fresh/container.log
store=$(mktemp -d "$BUILD/fresh/store.XXXX")
state=$(mktemp -d) # podman wants a short path
target='' runtime=''

pod() {
    podman --root "$store" --runroot "$state/run" --tmpdir "$state/tmp" --cgroup-manager cgroupfs --events-backend none ${runtime:+--runtime "$runtime"} "$@"
}
finish() {
    [ -z "$target" ] || kill "$target" 2>/dev/null || true
    pod rm --all --force >/dev/null 2>&1 || true
    umount -l "$store/overlay" 2>/dev/null || true # else it is in the way of rm
    rm -rf --one-file-system "$store" "$state"
    remove_root
}
base() { # GROUP: its tarball is an image
    zstd -dcq "$(base_tarball bookworm "$1")" | pod import - "localhost/base-$1" >"$log" 2>&1 || { tail "$log"; die "podman import"; }
}

# A new root that is only there for the source tree in it.
fresh_root bookworm container plain
trap finish EXIT
put_source /source

# Debian's podman prefers crun, which does not know each layout of control groups. A host may forbid to raise limits.
limits=(--ulimit nofile=1024:1024 --ulimit nproc=4096:4096)
base plain
for runtime in crun runc; do
    ! command -v $runtime >/dev/null || ! pod run --rm --pid=host "${limits[@]}" localhost/base-plain true >"$log" 2>&1 || break
    [ $runtime = crun ] || { tail "$log"; skip "podman cannot start a container here: $(tail -n 1 "$log")"; }
done
base package
pod build --network host "${limits[@]}" --build-arg BASE=localhost/base-plain --build-arg BUILD_BASE=localhost/base-package -t stalltrap "$root/source" \
    >"$log" 2>&1 || { tail -n 40 "$log"; die "podman build"; }

# What the documented command says, and its capabilities.
command=$(sed -n 's/^    sudo podman run \(.*\) stalltrap arm .*/\1/p' "$document" | head -n 1)
mapfile -t capabilities < <(sed -n 's/^| `\([A-Z_]*\)` | .*/\1/p' "$document")
[ "${#capabilities[@]}" -ge 4 ] && [ -n "$command" ] || die "there is no table, or no command, in $document"
for capability in "${capabilities[@]}"; do
    [[ $command == *--cap-add=$capability' '* ]] || die "the command has not $capability, and the table has"
done
[ "$(grep -o -e '--cap-add' <<<"$command" | wc -l)" = ${#capabilities[@]} ] || die "the table has not each capability of the command"
others=$(sed -E 's/--cap-[a-z]*=[A-Za-z_]* ?//g; s/-it ?//; s/-v \$PWD:\S* ?//' <<<"$command")

programs=$BUILD/tests/workloads
setpriv --reuid 65534 --regid 65534 --clear-groups "$programs/kinds" sleep >/dev/null &
target=$!

parts() { # CAPABILITY...: the parts that work with them
    # shellcheck disable=SC2086
    pod run $others --cap-drop=all "${@/#/--cap-add=}" "${limits[@]}" -v "$SOURCE/tests/fresh/parts.sh:/parts.sh:ro" --entrypoint bash stalltrap \
        /parts.sh "$programs/kinds" $target 2>>"$log" || die "parts.sh: $(tail -n 5 "$log")"
}

: >"$log"
sed -n 's/^- `\([a-z-]*\)`: .*/\1/p' "$document" | sort >"$state/parts"
all=$(parts "${capabilities[@]}" SYS_ADMIN | sort)
[ "$all" = "$(cat "$state/parts")" ] || { cat "$log"; die "with all capabilities and SYS_ADMIN not each part works, only: $all"; }
all=$(parts "${capabilities[@]}" | sort)
[ "$all" = "$(sed -n '/SYS_ADMIN` besides/!s/^- `\([a-z-]*\)`: .*/\1/p' "$document" | sort)" ] || { cat "$log"; die "with all capabilities of the table other parts work than it says: $all"; }
wrong=0
for capability in "${capabilities[@]}"; do
    echo "== without $capability" >>"$log"
    rest=()
    for other in "${capabilities[@]}"; do [ "$other" = "$capability" ] || rest+=("$other"); done
    lost=$(comm -13 <(parts "${rest[@]}" | sort) <(echo "$all") | xargs | sed 's/ /, /g')
    said=$(sed -n "s/^| \`$capability\` | \([^|]*\) |.*/\1/p" "$document" | tr -d '`' | tr ',' '\n' | xargs -n 1 | sort | xargs | sed 's/ /, /g')
    echo "$capability: $lost"
    [ "$lost" = "$said" ] && [ -n "$lost" ] || { echo "FAILED: without $capability do not work: $lost; $document says: $said"; wrong=1; }
done
[ $wrong = 0 ] || { cat "$log"; exit 1; }
echo "$(wc -w <<<"$all") parts, ${#capabilities[@]} capabilities, by $runtime"
