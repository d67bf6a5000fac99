/* The kinds that measure from one event of a thread to another. Shared with BPF. */
#ifndef ST_TRIGGERS_BPF_SPAN_H
#define ST_TRIGGERS_BPF_SPAN_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/filter.h"

struct span_config {
    st_u32 kind; /* enum st_stall_kind */

    st_u32 trigger; /* number of the --on */

    st_u32 measure_only;

    st_u32 worst; /* each new worst raises the threshold */

    st_u32 count_idle; /* idle=yes */

    char mark[ST_MARK_NAME]; /* not empty: hits fire nothing, they are marks of that name */

    struct idle_config idle;

    struct filter filter;
};

#endif
