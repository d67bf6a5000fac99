/* A source: what fills the rings. The recorder knows this table, never which one is behind it. */
#ifndef ST_RECORDER_SOURCES_SOURCE_H
#define ST_RECORDER_SOURCES_SOURCE_H

#include "base/error.h"
#include "base/target.h"
#include "recorder/perf/record_filter.h"
#include "recorder/sources/ring_total.h"
#include "triggers/select.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct rec_source; /* each source has its own */

enum rec_rings { REC_RINGS_AUTO, REC_RINGS_THREAD, REC_RINGS_CPU };

/* How a sample tells who called whom in user code. Of the kernel the kernel's own unwinder does. */
enum rec_callgraph {
    REC_CALLGRAPH_FP,    /* by frame pointers */
    REC_CALLGRAPH_DWARF, /* registers and a piece of the stack, unwound when it is decoded */
    REC_CALLGRAPH_LBR,   /* the processor's stack of branches, where it has one */
};

struct rec_source_config {
    const struct st_target *target; /* resolved; stays valid until close */

    pid_t command; /* ST_TARGET_COMMAND: the child, which waits in a read() before its exec until the
                    * recorder, after start(), lets it go; else 0 */

    uint64_t ring_bytes; /* of trace data a ring; 0: the source's default */

    uint64_t ring_total; /* all rings together, where the source bounds that; 0: the default */

    bool kernel; /* trace the kernel too, where the source can */

    bool kernel_demanded; /* it is no mere wish: where it cannot be, probe() says why */

    enum rec_rings rings;

    bool freeze_on_trigger; /* a trigger's announcement may stop the trace at once, where the source can:
                             * nothing past it is wanted */

    bool once; /* nothing is recorded after the first trap */

    unsigned frequency; /* of samples a second; 0: the source's default */

    enum rec_callgraph callgraph;

    bool every_switch; /* each context switch and wake-up is sampled, whatever it costs (sources that sample)
                        */

    struct trg_select
        *select; /* what the target's is of events on the CPUs; NULL: events are opened on threads
                  */

    bool syscalls; /* a mark at each system call's entry and exit, where the source can */
};

/* One ring's bytes, oldest first, in up to two pieces; valid until resume() or close(). Of a ring of records
 * (rec_source_ops.records) the newest record comes first, and the oldest may be cut. */
struct rec_ring {
    uint32_t idx;

    pid_t tid; /* -1: a ring of a CPU */

    pid_t pid;

    int cpu; /* -1: a ring of a thread */

    const void *part[2];

    size_t size[2];

    uint64_t
        offset; /* in the ring's stream of the first byte that is here; > 0: older bytes were overwritten */

    uint64_t first_time; /* perf clock ns since when this ring recorded (thread attached) */

    bool marks; /* only with records: of a CPU, it holds no samples of what ran there, but wake-ups */

    bool in_kernel; /* stopped by the kernel before user space woke */

    uint64_t stopped; /* perf clock ns: when user space had stopped it; 0: not known, or it was not running */
};

/* What a freeze stops before all else: the ring of the thread that stalled, or of the CPU it was on. */
struct rec_first {
    pid_t tid; /* -1: of no thread */

    int cpu; /* -1: of no CPU */
};

/* Whether a ring of thread `tid`, or of `cpu` where that is -1, is such a one. */
static inline bool rec_is_first(struct rec_first first, pid_t tid, int cpu)
{
    return tid >= 0 ? tid == first.tid : cpu >= 0 && cpu == first.cpu;
}

/* How a freeze went, for the snapshot's own account. */
struct rec_freeze {
    uint64_t asked_time; /* perf clock ns */

    uint64_t done_time;

    bool in_kernel; /* stopped by the kernel before user space woke */
};

/* A context switch of a target's thread, as the kernel's side-band would tell it (PERF_RECORD_SWITCH). */
struct rec_switch {
    uint64_t time; /* perf clock ns */

    pid_t pid, tid;

    uint32_t cpu;

    bool out; /* the thread lost the CPU; else it got one (PERF_RECORD_MISC_SWITCH_OUT) */

    bool preempt; /* out while it could run (PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) */
};

/* An event that has records in the rings. */
struct rec_record_event {
    struct perf_event_attr attr;

    const char *name; /* as perf names it */

    const uint64_t *ids;

    size_t nids;
};

struct rec_source_ops {
    const char *name; /* "step" */

    const char *summary; /* one line for help and doctor */

    /* What recording does to the times that a trigger measures, a sentence for the person who armed one;
     * NULL: next to nothing. */
    const char *distorts;

    /* Whether this machine and user can: 0, or ST_ECANNOT with the reason and what to do. Touches nothing. */
    int (*probe)(const struct rec_source_config *config, struct st_error *err);

    /* Opens rings and attaches to every thread of the target. Nothing is recorded yet. On error everything is
     * undone. */
    int (*open)(const struct rec_source_config *config, struct rec_source **source, struct st_error *err);

    /* Recording is live for every thread when it returns. */
    int (*start)(struct rec_source *s, struct st_error *err);

    /* Stops recording in every ring, in those of `first` before the others. The target goes on (a source that
     * must may hold it for as long as the freeze lasts). */
    int (*freeze)(struct rec_source *s, struct rec_first first, struct rec_freeze *how, struct st_error *err);

    /* While frozen: the rings, as an array of *n that the source owns until resume(). */
    int (*rings)(struct rec_source *s, const struct rec_ring **rings, size_t *n, struct st_error *err);

    int (*resume)(struct rec_source *s, struct st_error *err);

    /* A descriptor that becomes readable when the source has something to tell (a thread appeared, everything
     * ended); -1: none. The recorder then calls service(). */
    int (*poll_fd)(struct rec_source *s);

    /* 1: all traced threads have ended; 0: go on; negative: the source failed. */
    int (*service)(struct rec_source *s, struct st_error *err);

    /* The side-band told of a new thread of the target (fork or clone); sources that find out themselves have
     * NULL. */
    int (*thread_started)(struct rec_source *s, pid_t pid, pid_t tid, struct st_error *err);

    /* A process came into the target that nobody in it made, after start(): attaches to its threads, those
     * that it will make included. What cannot be attached to is told once, and no error. */
    int (*joined)(struct rec_source *s, pid_t pid, struct st_error *err);

    /* Whether with this configuration threads that are born later are recorded by themselves, so that
     * thread_started need not be told of each at once. NULL: no. */
    bool (*inherits)(const struct rec_source_config *config);

    /* The attribute of the event that records, as it belongs into the snapshot; of Intel PT also the words
     * of PD_RECORD_AUXTRACE_INFO (enum pd_pt_priv; others leave them 0). */
    void (*trace_event)(struct rec_source *s, struct perf_event_attr *attr, const char **name, uint64_t *priv,
                        size_t npriv);

    /* Where recording may go on past a trap, until the stall has ended: mark() notes how far the rings are,
     * has_room() whether what was written since has left them most of what they held: nothing of it was
     * overwritten, or a quarter of a ring at most. Both NULL: the source records too fast for that. */
    void (*mark)(struct rec_source *s);
    bool (*has_room)(struct rec_source *s);

    /* What the target does between freeze() and resume() is missing in its rings afterwards. */
    bool misses_while_frozen;

    /* The rings hold perf's records (samples), and no AUX area. */
    bool records;

    /* Only with records: the event of index n, from 0 on, that has records in the rings; 0 is the one that
     * samples. Its ids are an array of the source's own, valid until the next call; name NULL or no ids: none
     * has any now. False: there is no such index. */
    bool (*record_event)(struct rec_source *s, size_t n, struct rec_record_event *event);

    /* Only with records, may be NULL (all do): which records out of the rings belong into the snapshot,
     * sorted and owned by the caller. 0, or -1 when memory ran out (what is there is the caller's to free).
     */
    int (*filter)(struct rec_source *s, struct rec_filter *filter);

    /* Whether with this configuration its events can be CPU-wide (config.select). NULL: no. */
    bool (*selects)(const struct rec_source_config *config);

    /* Whether it waits for a trigger's announcement (freeze_on_trigger), which then is to come as early as it
     * can. NULL: no. */
    bool (*stops_in_kernel)(struct rec_source *s);

    /* CPUs that came or went since open() and so are not (or no longer) recorded, as "1,3"; "" where there
     * are none. NULL: there never are. */
    void (*unseen_cpus)(struct rec_source *s, char *text, size_t size);

    /* The same of marks: CPUs on which wake-ups are not recorded any more. NULL: there never are. */
    void (*unmarked_cpus)(struct rec_source *s, char *text, size_t size);

    /* What was not recorded so that recording costs no more than it may, since when, as "since=TIME
     * switches=7 ..." (see docs/how-it-works.md); "" where nothing was. NULL: there never is. */
    void (*left_out)(struct rec_source *s, char *text, size_t size);

    /* With rings of threads, how far each is written: to be called once a second. False: that is of no use
     * with rings of this kind. NULL: never. */
    bool (*look)(struct rec_source *s);

    /* What bounds its rings, and the threads that have none for that; valid until anything else is called.
     * NULL: nothing does. */
    const struct rec_ring_total *(*ring_total)(struct rec_source *s);

    /* "user, 4 MiB a thread, 2 threads": the middle of the armed line. */
    void (*describe)(struct rec_source *s, char *text, size_t size);

    /* The kernel's context-switch records say nothing while this source records (stepping switches at every
     * step): the recorder leaves them out of its side-band and writes those that switches() tells. */
    bool own_switches;

    /* Only with own_switches, while frozen: the real switches (threads that blocked or were preempted in a
     * system call), in the order of time, as far back as the rings reach; an array of *n that the source owns
     * until resume(). A thread that is blocked at the freeze has its `out` as its last one. */
    int (*switches)(struct rec_source *s, const struct rec_switch **switches, size_t *n,
                    struct st_error *err);

    /* Detaches from the target, which goes on, and frees. Also after a failed start. NULL is allowed. */
    void (*close)(struct rec_source *s);
};

/* All sources, in the order `auto` tries them; NULL-terminated. */
extern const struct rec_source_ops *const rec_sources[];

#endif
