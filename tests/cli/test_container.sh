#!/bin/bash
# --container: the groups of podman, docker, containerd and CRI-O, by id, by the beginning of it, by name, by POD/NAME; what runs in the container is
# recorded, with names and code that are in its root alone, what is started in it later too. In folders laid out as the runtimes do, and where
# podman can start a container here, in one of its own.
set -u
# Names of docker and containerd are where nobody else's are touched.
[ "$(id -u)" = 0 ] || { echo "skipped: cgroups and BPF need root"; exit 77; }
[ -n "${ST_OWN_MOUNTS:-}" ] || ST_OWN_MOUNTS=1 exec unshare --mount --propagation private bash "$0" "$@"
. "$SOURCE/tests/cli/lib.sh"

root=
for folder in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    [ ! -e $folder/cgroup.controllers ] || root=$folder
done
[ -n "$root" ] || { echo "skipped: no cgroups of version 2"; exit 77; }
top=$root/st-container-$$
pod() { # one that works here: Debian's podman prefers crun, which does not know each layout of control groups
    podman --root "$work/store" --runroot "$work/run" --tmpdir "$work/tmp" --cgroup-manager cgroupfs --events-backend none \
        ${runtime:+--runtime "$runtime"} "$@"
}
removed() {
    local in
    mapfile -t in <"$1/cgroup.procs"
    [ "${#in[@]}" = 0 ] || kill -KILL "${in[@]}" 2>/dev/null
    rmdir "$1" 2>/dev/null
}
end_all() {
    local g
    [ -z "${runtime:-}" ] || pod rm --all --force >/dev/null 2>&1
    umount -l "$work/store/overlay" 2>/dev/null
    # podman makes some in each tree
    while read -r g; do wait_for 60 removed "$g"; done < <(
        find /sys/fs/cgroup -depth -type d '(' -path "*/st-container-$$" -o -path "*/st-container-$$/*" ')' 2>/dev/null)
    cleanup
}
trap end_all EXIT
mkdir "$top" || { echo "skipped: no cgroup can be made"; exit 77; }
mkdir -p /var/lib/docker /run/containerd && mount -t tmpfs none /var/lib/docker && mount -t tmpfs none /run/containerd || fail "mount"

new_id() { printf '%s%s' "$1" "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')" | head -c 64; }
docker_id=$(new_id a1b2) cri_id=$(new_id a1b3) other_id=$(new_id c0de) crio_id=$(new_id d00d)
mkdir -p "$top/docker-$docker_id.scope" "$top/kubepods-burstable-pod1.slice/cri-containerd-$cri_id.scope" "$top/kubepods/burstable/pod2/$other_id" \
    "$top/crio-$crio_id.scope/container" "$top/crio-conmon-$crio_id.scope" "$top/$(new_id beef)" || fail "mkdir"
mkdir -p "/var/lib/docker/containers/$docker_id" && echo "{\"Config\":{\"Name\":\"inner\"},\"Name\":\"/st-web-$$\"}" >"/var/lib/docker/containers/$docker_id/config.v2.json"
kube() { # ID NAME POD
    mkdir -p "/run/containerd/io.containerd.runtime.v2.task/k8s.io/$1"
    echo "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"$2\",\"io.kubernetes.cri.sandbox-name\":\"$3\"}}" \
        >"/run/containerd/io.containerd.runtime.v2.task/k8s.io/$1/config.json"
}
kube "$cri_id" st-app-$$ one
kube "$other_id" st-app-$$ two

meant() { # TEXT FOLDER: it stands for it
    rm -f own.ready
    start "$STALLTRAP" arm --source sample --container "$1" --ready-fd 9 -o own 9>own.ready >own.out 2>own.err
    wait_for 120 grep -qsx armed own.ready || fail "--container $1" own.err
    grep -qF "no process is in container $1 (cgroup $2) yet" own.err || fail "--container $1 is not $2" own.err
    kill -TERM "$pid"
    wait_end "$pid" 60
}
docker=$top/docker-$docker_id.scope
meant "$docker_id" "$docker"
meant "${docker_id:0:12}" "$docker"
meant "st-web-$$" "$docker"
meant "one/st-app-$$" "$top/kubepods-burstable-pod1.slice/cri-containerd-$cri_id.scope"
meant "two/st-app-$$" "$top/kubepods/burstable/pod2/$other_id"
meant "${crio_id:0:20}" "$top/crio-$crio_id.scope"

refused() { # STATUS TEXT MESSAGE
    "$STALLTRAP" arm --source sample --container "$2" -o own >out 2>err
    [ $? = "$1" ] && grep -q -e "$3" err || fail "--container $2" err
}
refused 1 "st-none-$$" "no running container has the id or the name 'st-none-$$'"
grep -q "looked for in $root: docker-ID.scope" err || fail "it does not say where it looked" err
grep -q "there are: .*${docker_id:0:12} (st-web-$$)" err || grep -q 'there are: .*, \.\.\.' err || fail "it does not say what there is" err
refused 2 "st-app-$$" "'st-app-$$' stands for 2 containers: .*(one/st-app-$$).*(two/st-app-$$)\|stands for 2 containers: .*(two/st-app-$$).*(one/st-app-$$)"
refused 2 a1b "'a1b' stands for [2-9] containers"
refused 1 "$(new_id beef)" "no running container" # a folder of that form, of no runtime
chmod 666 "/var/lib/docker/containers/$docker_id/config.v2.json" # anybody could say so
refused 1 "st-web-$$" "no running container"
chmod 644 "/var/lib/docker/containers/$docker_id/config.v2.json"
"$STALLTRAP" arm --container x --cgroup y 2>err
[ $? = 2 ] && grep -q 'one target only' err || fail "two targets" err

# A process in a root of its own, moved into the container; then one that is started there later.
mkdir -p box/bin box/proc
cc -O1 -g -static -pthread -o box/bin/st-in-box "$SOURCE/tests/workloads/comer.c" || fail "cc"
recorded() { # DB TID FILE: what it computed, in code that the host does not have by that name
    [ ! -e "$3" ] || fail "$3 is there on the host"
    [ "$(sql "$1" "SELECT count(*) > 0 FROM calls WHERE tid = $2 AND function = 'compute_here' AND module GLOB '*st-in-box'")" = 1 ] ||
        fail "$1: nothing of what $2 computed: $(sql "$1" "SELECT DISTINCT function, module FROM calls WHERE tid = $2"; sql "$1" "SELECT * FROM gaps")" arm.out arm.err
    # names
    [ "$(sql "$1" "SELECT group_concat(DISTINCT name || ' ' || process) FROM threads WHERE tid = $2")" = "st-in-box st-in-box" ] || fail "$1: $2 is not named"
}
traps() { # SNAPSHOT TID
    wait_for 300 grep -q "^trap [0-9]*: thread $2 \"st-in-box\" " arm.out || fail "no trap of $2" arm.out arm.err
    wait_for 300 grep -q "^wrote .*$1.db" arm.out || fail "no $1.db" arm.out arm.err
    recorded "$1.db" "$2" /bin/st-in-box
}
# As a runtime does: the box is the root of a mount name space of its own.
cat >in_box <<'END'
cd "$1" && mount --bind . . && cd "$1" && mkdir -p old && pivot_root . old && exec /bin/st-in-box stall
END
trigger='syscall:clock_nanosleep>250ms'
start unshare --pid --fork --mount bash "$work/in_box" "$work/box" >said 2>said.err
wait_for 60 grep -qsx ready said || fail "the workload does not wait" said
inside=$(pgrep -P "$pid")
# In a chroot the kernel's records and /proc/PID/maps name files from two roots on: code that is mapped later stays without a name.
grep -q ' /bin/st-in-box$' "/proc/$inside/maps" || { echo "skipped: this is a chroot, what is in a container has other paths"; exit 77; }
start_arm --source sample --container "st-web-$$" --on "$trigger" --snapshots 2 -o box
echo "$inside" >"$docker/cgroup.procs" || fail "it cannot be moved"
kill -USR1 "$inside"
traps box.1 "$inside"
[ "$(sql box.1.db "SELECT value LIKE '--container st-web-$$, cgroup $docker (%$inside%)' FROM meta WHERE key = 'target'")" = 1 ] || fail "meta" arm.err
rm -f said
start "$programs/comer" into "$docker" unshare --pid --fork --mount bash "$work/in_box" "$work/box" >said 2>said.err
wait_for 60 grep -qsx ready said && wait_for 60 grep -qs '^pid' said || fail "no workload is started in the container" said
inside=$(pgrep -P "$(sed -n 's/^pid //p' said)")
kill -USR1 "$inside"
end_of "$arm" 300 arm
[ "$status" = 0 ] || fail "arm ends with $status" arm.out arm.err
recorded box.2.db "$inside" /bin/st-in-box

# watch, and what the shell completes.
start "$STALLTRAP" watch --container "${docker_id:0:8}" --on "$trigger" >watch.out 2>watch.err
watch=$pid
wait_for 120 grep -q '^watching' watch.err || fail "watch does not begin" watch.err
wait_for 60 at_least 2 '^ready$' said || fail "the workload does not wake"
kill -USR1 "$inside"
wait_for 60 at_least 3 '^ready$' said || fail "the workload does not wake"
kill -INT "$watch"
end_of "$watch" 60 watch
[ "$(sed -n 's/.*: \([0-9,]*\) measured$/\1/p' watch.out)" = 1 ] || fail "watch has not measured it" watch.out watch.err
"$STALLTRAP" complete arm --container st- >offered || fail "completion ends with $?"
for word in "st-web-$$" ; do grep -q "^$word\b" offered || fail "$word is not offered" offered; done

# One of podman's.
command -v podman >/dev/null || { echo "no podman: its own containers were not tried"; exit 0; }
for runtime in crun runc; do
    ! command -v $runtime >/dev/null || ! pod run -d --name "st-podman-$$" --cgroup-parent "/st-container-$$" --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --network none \
        --rootfs "$work/box" /bin/st-in-box stall >pod.id 2>pod.err || break
    pod rm --force "st-podman-$$" >/dev/null 2>&1
    [ $runtime = crun ] || { echo "podman cannot start a container here: $(tail -n 1 pod.err)"; exit 0; }
done
start_arm --source sample --container "st-podman-$$" --on "$trigger" --snapshots 2 -o pod
grep -q "1 process in container st-podman-$$ (cgroup .*libpod-$(cat pod.id)" arm.err || fail "it is not the one of podman" arm.err
inside=$(pgrep -x st-in-box -n)
kill -USR1 "$inside"
traps pod.1 "$inside"
pod exec -d "st-podman-$$" /bin/st-in-box stall || fail "podman exec" pod.err
newest() { [ "$(pgrep -x st-in-box -n)" != "$inside" ]; }
wait_for 60 newest || fail "podman exec starts nothing"
inside=$(pgrep -x st-in-box -n)
ready() { [ "$(awk '{ print $1 }' "/proc/$inside/syscall")" = 128 ]; } # rt_sigtimedwait: it waits for the word
wait_for 60 ready || fail "what podman has started does not wait"
kill -USR1 "$inside"
end_of "$arm" 300 arm
[ "$status" = 0 ] || fail "arm ends with $status" arm.out arm.err
recorded pod.2.db "$inside" /bin/st-in-box
start_arm --source sample --container "st-podman-$$" --on "$trigger" -o end
pod stop --time 0 "st-podman-$$" >/dev/null 2>&1
end_of "$arm" 120 arm
grep -q "the cgroup .*libpod-.* was removed" arm.err || fail "it does not end with the container" arm.err
