/* Reading a ring of context switches while a CPU writes it (struct select_ring). */
#ifndef ST_TRIGGERS_SELECT_RING_H
#define ST_TRIGGERS_SELECT_RING_H

#include "triggers/bpf/select_shared.h"

#include <stddef.h>
#include <stdint.h>

/* Context switches of one CPU, the oldest first. */
struct trg_select_switches {
    const struct select_switch *at;

    size_t n;

    uint64_t lost; /* so many before them had been written over */
};

/* What was written since *taken, which is set to what was seen now. `copy` holds what is returned. */
struct trg_select_switches trg_ring_take(const struct select_ring *ring, uint64_t *taken,
                                         struct select_switch copy[SELECT_RING]);

#endif
