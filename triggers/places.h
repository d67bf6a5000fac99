/* Where things are in the running kernel. */
#ifndef ST_TRIGGERS_PLACES_H
#define ST_TRIGGERS_PLACES_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct trg_places {
    long preempt_count; /* per-CPU variables, relative to the run queue (triggers/bpf/kernel.h uses it) */

    long current_task;

    bool nolock; /* the kernel has an allocation that takes no locks, and uses it for BPF timers (6.18) */

    uint64_t wake_up,
        wake_up_end; /* the function try_to_wake_up(); 0 when the kernel does not tell addresses */
};

/* From the kernel's BTF and its kallsyms. ST_ECANNOT names what is not in the BTF. */
int trg_find_places(struct trg_places *places, struct st_error *err);

#endif
