/* Whether a task is of the target, by its name or its cgroup. Included by the BPF programs. */
#ifndef ST_TRIGGERS_BPF_BELONGS_BPF_H
#define ST_TRIGGERS_BPF_BELONGS_BPF_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/kernel.h"

#define MAX_CGROUP_DEPTH 32

const volatile struct follow_config follow;

/* Whether the task is in the cgroup or below it. */
static __noinline __attribute__((unused)) bool in_cgroup(struct task_struct *task)
{
    struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);

    for (int depth = 0; cgroup && depth < MAX_CGROUP_DEPTH; depth++) {
        if (BPF_CORE_READ(cgroup, kn, id) == follow.cgroup)
            return true;
        cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent); /* `self` is the first member */
    }
    return false;
}

/* Whether processes are chosen by name. */
static __always_inline bool by_name(void)
{
    return follow.comm[0];
}

/* Whether that is the name, which may be longer: the kernel cuts it as this does. */
static __always_inline __attribute__((unused)) bool is_name(const char *comm)
{
    char copy[FOLLOW_COMM] = {};

    bpf_probe_read_kernel_str(copy, sizeof(copy), comm);
#pragma unroll
    for (int i = 0; i < FOLLOW_COMM; i++) {
        if (copy[i] != follow.comm[i])
            return false;
        if (!copy[i])
            break;
    }
    return true;
}

/* A process has the name of its first thread. */
static __always_inline __attribute__((unused)) bool has_name(struct task_struct *task)
{
    struct task_struct *leader = BPF_CORE_READ(task, group_leader);

    return is_name(leader->comm);
}

#endif
