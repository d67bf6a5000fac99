/* Stopping Intel PT from within the kernel: an event with aux_pause in the PT event's group (Linux 6.13)
 * pauses the trace the instant it fires. It sits on the tracepoint bpf_trace:bpf_trace_printk, which a
 * trigger's BPF program fires by announcing a stall (triggers/bpf/output.bpf.h), in the thread that stalled.
 * A pause outlives DISABLE and ENABLE: only an event with aux_resume ends it (tests/ptvm/README.md). */
#ifndef ST_RECORDER_SOURCES_INTEL_PT_PAUSE_H
#define ST_RECORDER_SOURCES_INTEL_PT_PAUSE_H

#include "base/error.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pt_pause {
    int fd; /* the event that pauses; -1: none */

    int resume_fd; /* the one that resumes */

    uint64_t seen; /* pauses so far */
};

/* Whether this kernel and user can: 0, or ST_ECANNOT with the reason. */
int pt_pause_probe(struct st_error *err);

/* Adds the two events to the group of the PT event `leader`, which was opened by `attr` for `tid` and `cpu`.
 * Returns 0, or -1 with errno (EINVAL: this kernel has no aux_pause) and nothing open. */
int pt_pause_open(struct pt_pause *pause, int leader, const struct perf_event_attr *attr, pid_t tid, int cpu);

/* Whether it has paused since the last call. */
bool pt_pause_happened(struct pt_pause *pause);

/* Makes the PT event go on some 10 us after it is enabled, which has to follow. False where that cannot be:
 * inherited events pause for good. */
bool pt_pause_lift(const struct pt_pause *pause);

/* Safe on one that is not open (fd -1). */
void pt_pause_close(struct pt_pause *pause);

#endif
