/* The CPU quota of a thread's control groups. */
#ifndef ST_TRIGGERS_BPF_QUOTA_BPF_H
#define ST_TRIGGERS_BPF_QUOTA_BPF_H

#include "triggers/bpf/kernel.h"

#define QUOTA_SLOT 32 /* bytes of an attribute "key=value"; readers skip the zeros between them */

enum { GROUPS_UP = 8 /* control groups above a thread that are looked at */ };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cfs_bandwidth {
    st_u64 quota; /* ns; all ones: none */

    st_u64 period; /* ns */

    int nr_throttled;
};

struct task_group {
    struct task_group *parent;

    struct cfs_bandwidth cfs_bandwidth;
};

struct cfs_rq___quota {
    int throttle_count;
};

struct sched_entity___quota {
    struct cfs_rq___quota *cfs_rq;
};

struct task_struct___quota {
    struct task_group *sched_task_group;

    struct sched_entity___quota se;
};

/* From Linux 6.18 each thread is throttled by itself, on its way out of the kernel. */
struct task_struct___throttled {
    _Bool throttled;
};

#pragma clang attribute pop

/* Whether a thread that has no CPU is kept from one by a quota now (kernel/sched/fair.c). */
static __always_inline bool is_throttled(struct task_struct *task)
{
    if (bpf_core_field_exists(struct task_struct___throttled, throttled))
        return BPF_CORE_READ((struct task_struct___throttled *)task, throttled);
    return BPF_CORE_READ((struct task_struct___quota *)task, se.cfs_rq, throttle_count) > 0;
}

static __always_inline void quota_number(struct st_stall_record *r, st_u32 slot, const char *format,
                                         st_u64 value)
{
    bpf_snprintf(r->extra + slot * QUOTA_SLOT, QUOTA_SLOT, format, &value, sizeof(value));
}

/* The quota of the nearest of its groups that has one: the first attributes of a record, cpu_quota_us,
 * cpu_period_us, throttled (how often that group was, ever), and of a wait that goes on throttled_now. */
static __noinline void about_quota(struct st_stall_record *r, struct task_struct *task)
{
    static const char quota[] = "cpu_quota_us=%llu", period[] = "cpu_period_us=%llu",
                      times[] = "throttled=%llu", now[] = "throttled_now=%llu";
    struct task_group *group = BPF_CORE_READ((struct task_struct___quota *)task, sched_task_group);

    for (int up = 0; group && up < GROUPS_UP; up++) {
        st_u64 ns = BPF_CORE_READ(group, cfs_bandwidth.quota);

        if (ns && ns != ~0ull) {
            quota_number(r, 0, quota, ns / 1000);
            quota_number(r, 1, period, BPF_CORE_READ(group, cfs_bandwidth.period) / 1000);
            quota_number(r, 2, times, BPF_CORE_READ(group, cfs_bandwidth.nr_throttled));
            r->extra_n = 3 * QUOTA_SLOT;
            if (r->flags & ST_STALL_ONGOING) {
                quota_number(r, 3, now, is_throttled(task));
                r->extra_n = 4 * QUOTA_SLOT;
            }
            return;
        }
        group = BPF_CORE_READ(group, parent);
    }
}

#endif
