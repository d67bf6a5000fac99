/* What joins.bpf.c and joins.c share. */
#ifndef ST_TRIGGERS_BPF_JOINS_SHARED_H
#define ST_TRIGGERS_BPF_JOINS_SHARED_H

#include "base/stall_record.h"

#define JOINS_RING (256 * 1024) /* bytes: 8,192 of them */

enum join_kind {
    JOIN_CAME = 1, /* a process came into the target */
    JOIN_GONE,     /* the cgroup was removed */
};

struct join {
    st_u64 time; /* ktime */

    st_u32 kind, pid;
};

#endif
