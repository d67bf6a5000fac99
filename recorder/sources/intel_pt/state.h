/* What an open intel-pt source is made of. */
#ifndef ST_RECORDER_SOURCES_INTEL_PT_STATE_H
#define ST_RECORDER_SOURCES_INTEL_PT_STATE_H

#include "base/vec.h"
#include "recorder/perf/clock.h"
#include "recorder/perf/cpu_watch.h"
#include "recorder/perf/cpus.h"
#include "recorder/sources/intel_pt/pause.h"
#include "recorder/sources/intel_pt/pmu.h"
#include "recorder/sources/intel_pt/ring.h"
#include "recorder/sources/source.h"

enum {
    PT_RING_BYTES = 4 << 20, /* the default */
    PT_RING_LEAST = 16 * 1024,
    PT_PART_LEAST =
        8, /* where all are to have one, a ring of a thread is not made smaller than one part in so many */
    PT_FEW_THREADS = 16, /* up to so many get a ring each */
    PT_MOST_ENDED = 32,  /* rings of threads that ended are kept; then the oldest goes */
    PT_LEAST_SWEPT = 512 /* events of processes that come and go; of fewer, those that ended stay open */
};

struct pt_event {
    int fd;

    pid_t pid, tid; /* -1: whoever runs */

    int cpu; /* -1: wherever it runs */

    size_t ring; /* it writes into */

    struct pt_pause pause;
};

struct rec_source {
    struct pt_pmu pmu;

    struct perf_event_attr attr;

    struct rec_clock clock;

    bool per_cpu; /* rings are of CPUs, else of threads */

    bool running; /* started, and not frozen */

    bool ran; /* it was started */

    bool pausing; /* events can be paused from within the kernel */

    bool told_unrecorded; /* that threads have no ring */

    size_t swept; /* events that there were when those that ended were last closed, in rings of CPUs */

    struct rec_ring_total total; /* of rings of threads, or of CPUs */

    size_t wanted, asked; /* bytes a ring, as wanted; as the total has it */

    size_t ring_bytes; /* as it became */

    rec_cpu_list cpus; /* on which it records; -1 alone: whichever its threads run on */

    struct rec_cpu_watch cpu_watch; /* only where the events are of CPUs, not of threads */

    ST_VEC(struct pt_ring) rings;

    ST_VEC(struct pt_event) events;

    ST_VEC(struct rec_ring) told; /* of the freeze */
};

/* source.c: rec_source_ops.look. */
bool pt_look(struct rec_source *s);

/* attach.c: opens the events and rings of the whole target, disabled. The rings' size is halved as long as
 * the limits refuse it. */
int pt_attach(struct rec_source *s, const struct rec_source_config *config, struct st_error *err);

/* A ring for a thread that was born while armed, of the rings-a-thread kind; nothing if it has one, has
 * ended, or there is no room for one, or the limits allow none (which is told once). */
int pt_attach_born(struct rec_source *s, pid_t pid, pid_t tid, struct st_error *err);

/* The same for each thread of a process that came into the target; in rings of CPUs too. */
int pt_attach_joined(struct rec_source *s, pid_t pid, struct st_error *err);

/* Closes all events and rings. */
void pt_detach(struct rec_source *s);

/* Enables or disables an event. A thread that has ended is no error. */
int pt_event_switch(const struct pt_event *event, bool on, struct st_error *err);

#endif
