/* Processes that come into the target: into its cgroup, or to its name. */
#include "triggers/bpf/belongs.bpf.h"
#include "triggers/bpf/joins_shared.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, JOINS_RING);
} joins SEC(".maps");

st_u64 lost; /* for want of room */

static __always_inline void tell(enum join_kind kind, st_u32 pid)
{
    struct join *j = bpf_ringbuf_reserve(&joins, sizeof(*j), 0);

    if (!j) {
        __sync_fetch_and_add(&lost, 1);
        return;
    }
    j->time = bpf_ktime_get_ns();
    j->kind = kind;
    j->pid = pid;
    bpf_ringbuf_submit(j, 0);
}

/* A process was moved, in any hierarchy: it is told again where it was in already. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(join_moved, struct cgroup *to, const char *path, struct task_struct *task)
{
    if (in_cgroup(task))
        tell(JOIN_CAME, task->tgid);
    return 0;
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(join_removed, struct cgroup *cgroup)
{
    if (BPF_CORE_READ(cgroup, kn, id) == follow.cgroup && !BPF_CORE_READ(cgroup, root, hierarchy_id))
        tell(JOIN_GONE, 0);
    return 0;
}

/* clone3() can put a process into a cgroup in which its parent is not. What a process of the target forks is
 * told by the records of perf. */
SEC("tp_btf/task_newtask")
int BPF_PROG(join_born, struct task_struct *task)
{
    struct task_struct *parent = bpf_get_current_task_btf();

    if (task->pid != task->tgid || (st_u32)parent->tgid == follow.self)
        return 0;
    if (by_name() ? is_name(task->comm) && !has_name(parent) : in_cgroup(task) && !in_cgroup(parent))
        tell(JOIN_CAME, task->tgid);
    return 0;
}

/* A program is started under the name, or a process names itself so. */
SEC("tp_btf/task_rename")
int BPF_PROG(join_named, struct task_struct *task, const char *comm)
{
    if (task->pid == task->tgid && (st_u32)task->tgid != follow.self && is_name(comm))
        tell(JOIN_CAME, task->tgid);
    return 0;
}
