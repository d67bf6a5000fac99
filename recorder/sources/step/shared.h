/* The memory that arm and its stepping helper share. The helper writes; arm reads while the helper is frozen,
 * single counters excepted. Both see it at the same address, for the helper is forked off after it was
 * mapped. */
#ifndef ST_RECORDER_SOURCES_STEP_SHARED_H
#define ST_RECORDER_SOURCES_STEP_SHARED_H

#include "base/error.h"
#include "recorder/sources/step/ptenc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    STEP_SLOTS = 1024,   /* threads whose rings are kept, ended ones included */
    STEP_SWITCHES = 512, /* context switches a thread that are kept, a power of two */
};

enum step_slot_state {
    STEP_SLOT_FREE,
    STEP_SLOT_LIVE,
    STEP_SLOT_ENDED,
};

struct step_switch {
    uint64_t time; /* perf clock ns */

    uint32_t cpu;

    bool out;

    bool preempt;
};

/* A thread's ring and its context switches, both overwritten. */
struct step_slot {
    uint32_t state; /* enum step_slot_state */

    pid_t pid, tid;

    uint64_t first_time; /* perf clock ns when it began */

    uint64_t end_time; /* when the thread ended */

    uint64_t stopped; /* when the last freeze had closed the ring; 0: it has not */

    struct ptenc_ring ring;

    uint64_t nswitches; /* ever; the newest is switches[(nswitches - 1) % STEP_SWITCHES] */

    struct step_switch switches[STEP_SWITCHES];
};

struct step_shared {
    size_t bytes; /* of the whole mapping */

    uint32_t nslots;

    size_t ring_bytes;

    _Atomic uint32_t live; /* threads that are stepped or attached to */

    _Atomic uint32_t unrecorded; /* threads that found no free slot */

    _Atomic uint64_t steps;

    struct step_slot slots[];
};

/* Reserves slots with rings of ring_bytes (rounded up to pages); memory is taken as it is written. Fewer
 * slots where the machine refuses. ST_ENOMEM when not even one is to be had. */
int step_shared_create(size_t ring_bytes, struct step_shared **shared, struct st_error *err);

/* Unmaps. NULL is allowed. */
void step_shared_free(struct step_shared *shared);

/* A slot for a new thread, its ring empty: a free one, else that of the thread that ended first; NULL when
 * all live. */
struct step_slot *step_slot_take(struct step_shared *shared, pid_t pid, pid_t tid, uint64_t now);

/* The thread has ended; its ring stays until the slot is needed. */
void step_slot_end(struct step_slot *slot, uint64_t now);

#endif
