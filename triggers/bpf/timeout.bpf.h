/* How long the system call of a record was asked to wait: the attribute timeout_ns. */
#ifndef ST_TRIGGERS_BPF_TIMEOUT_BPF_H
#define ST_TRIGGERS_BPF_TIMEOUT_BPF_H

#include "triggers/bpf/kernel.h"
#include "triggers/bpf/timeout.h"

const volatile st_u64 real_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC when the program was loaded */

/* The thread is current, and still in the call whose arguments the record has. 0: not known, or for ever. */
static __noinline st_u64 timeout_asked(const struct st_stall_record *r)
{
    struct timeout_place place;
    st_u64 two[2];

    if (r->syscall < 0 || r->flags & ST_STALL_COMPAT)
        return 0;
    place = timeout_of(r->syscall, r->syscall_args);
    if (place.form == TIMEOUT_NONE)
        return 0;
    if (place.form == TIMEOUT_MILLISECONDS)
        return (st_u32)place.value * 1000000ull;
    if (bpf_probe_read_user(two, sizeof(two), (void *)place.value))
        return 0;
    return timeout_ns(place.form, two, r->start_ktime, real_offset);
}

#endif
