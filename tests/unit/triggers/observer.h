/* For tests: an independent witness. Tracepoints, read through perf's rings, with the kernel's own filters.
 */
#ifndef ST_TEST_TRIGGERS_OBSERVER_H
#define ST_TEST_TRIGGERS_OBSERVER_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OBSERVER_EVENTS 4

struct observed {
    uint64_t time; /* CLOCK_MONOTONIC ns */

    uint32_t pid, tid, cpu; /* current */

    uint32_t event; /* in the order of observer_add() */

    unsigned char raw[96]; /* the tracepoint's record, as its format file tells */
};

struct observer {
    ST_VEC(int) fds;

    ST_VEC(void *) rings;

    uint32_t events;

    uint64_t ids[OBSERVER_EVENTS][64]; /* of each event on each CPU */

    uint64_t lost;

    ST_VEC(pid_t) busy; /* see observer_keep_awake() */

    ST_VEC(struct observed) seen;
};

/* False, with a message: this machine shows no tracepoints. */
bool observer_possible(void);

/* Begins to observe "CATEGORY/NAME" on all CPUs. Of `pid` only (0: any); filter: in ftrace's words, or NULL.
 */
void observer_add(struct observer *o, const char *event, const char *filter, int pid);

/* The same of a function of this program: each entry, or each return, in any process that runs it. */
void observer_add_function(struct observer *o, const void *function, bool returns);

/* Has a process on each CPU that gives way to everyone, so that none is idle until observer_free(): there are
 * kernels whose perf does not see what interrupts do while a CPU is. */
void observer_keep_awake(struct observer *o);

/* Ends it; what was seen is then in o->seen, by time. Fails the test when something was lost. */
void observer_end(struct observer *o);

void observer_free(struct observer *o);

int32_t observed_int(const struct observed *e, unsigned offset);

#endif
