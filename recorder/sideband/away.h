/* Threads that are off their CPU as a snapshot is made: in what state, and in which system call. A wait that
 * has ended was told of by its switch (recorder/sideband/waits.h); one that goes on was not. */
#ifndef ST_RECORDER_SIDEBAND_AWAY_H
#define ST_RECORDER_SIDEBAND_AWAY_H

#include "base/error.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rec_away {
    pid_t pid, tid;

    uint64_t time; /* CLOCK_MONOTONIC ns: when it was read */

    char state; /* as in /proc/PID/stat (fs/proc/array.c, task_state_array); never R */

    int syscall; /* its number, with the numbers of the thread's own ABI; -1: none, or not known */
};

typedef ST_VEC(struct rec_away) rec_away_list;

struct rec_away_wanted {
    pid_t pid, tid; /* a thread that is read before all others; 0: there is none */

    const pid_t *pids; /* the processes, */

    size_t npids;

    bool stepped; /* who is in a tracing stop is there for this recording, and does not wait */

    uint64_t most_ns; /* and for how long to read: those left over then are not told */
};

/* Appends what is read of them from /proc. A thread that ran meanwhile is not told, nor one whose files this
 * user may not read. Returns how many threads were left over, or ST_ENOMEM. */
int rec_away_read(const struct rec_away_wanted *wanted, rec_away_list *list, struct st_error *err);

#endif
