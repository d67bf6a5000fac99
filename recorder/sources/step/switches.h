/* The real context switches of a stepped thread: those within its system calls. A perf event on the thread
 * records switches while a system call runs and is off otherwise, for each step is a switch too. */
#ifndef ST_RECORDER_SOURCES_STEP_SWITCHES_H
#define ST_RECORDER_SOURCES_STEP_SWITCHES_H

#include "recorder/perf/ring.h"
#include "recorder/sources/step/shared.h"

#include <stdbool.h>
#include <sys/types.h>

struct step_switches {
    int fd; /* -1: none (perf events are refused); nothing is then recorded */

    bool on;

    bool resumed; /* the next record tells that the thread left its ptrace stop */

    struct rec_perf_ring ring;
};

/* For a thread that is in a ptrace stop. Failure leaves fd -1. */
void step_switches_open(struct step_switches *sw, pid_t tid);

/* The thread, stopped, is about to go on with a system call. */
void step_switches_resume(struct step_switches *sw);

/* Takes what was recorded into the slot. With `stopped`, the thread has reached the next ptrace stop and has
 * left its CPU (which is certain after a ptrace request on it); the switches into and out of ptrace stops are
 * dropped. */
void step_switches_collect(struct step_switches *sw, struct step_slot *slot, bool stopped);

/* The system call is over: as collect, then off. */
void step_switches_stop(struct step_switches *sw, struct step_slot *slot);

/* Safe on a closed one. */
void step_switches_close(struct step_switches *sw);

#endif
