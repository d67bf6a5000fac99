/* Which watched threads are in the cgroup right now. Behind follow.bpf.h; struct thread has the fields `css`
 * and `member`. */
#ifndef ST_TRIGGERS_BPF_MEMBER_BPF_H
#define ST_TRIGGERS_BPF_MEMBER_BPF_H

#include "triggers/bpf/follow.bpf.h"

static __always_inline bool is_member(struct thread *t, struct task_struct *task)
{
    if (follow.mode != FOLLOW_CGROUP)
        return true;
    if (t->css != (st_u64)task->cgroups) {
        t->css = (st_u64)task->cgroups;
        t->member = in_cgroup(task);
    }
    return t->member;
}

#endif
