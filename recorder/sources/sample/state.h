/* What an open sample source is made of. */
#ifndef ST_RECORDER_SOURCES_SAMPLE_STATE_H
#define ST_RECORDER_SOURCES_SAMPLE_STATE_H

#include "base/vec.h"
#include "recorder/perf/clock.h"
#include "recorder/perf/cpus.h"
#include "recorder/sources/sample/budget.h"
#include "recorder/sources/sample/cores.h"
#include "recorder/sources/sample/ring.h"
#include "recorder/sources/source.h"

enum {
    SMP_THREAD_BYTES = 1 << 20, /* the defaults: of a ring of a thread, */
    SMP_CPU_BYTES = 4 << 20,    /* and of a CPU, */
    SMP_CPU_LEAST = 512 << 10,  /* at least so much */
    SMP_CPUS_BYTES = 64 << 20, /* where those of all CPUs, of which a target may use a few, would take more */
    SMP_DUMP_FACTOR = 8,       /* times as large where samples carry a piece of the stack */
    SMP_WAKE_BYTES = 512 * 1024, /* of a ring of wake-ups */
    SMP_RING_LEAST = 16 * 1024,
    SMP_PART_LEAST =
        8, /* where all are to have one, a ring of a thread is not made smaller than one part in so many */
    SMP_STACK_BYTES = 8192, /* of the stack in a sample, to be unwound by DWARF */
    SMP_FEW_THREADS = 16,   /* up to so many get a ring each */
    SMP_MOST_ENDED = 32     /* rings of threads that ended are kept; then the oldest goes */
};

/* What has records in the rings. */
enum smp_kind {
    SMP_SAMPLES,
    SMP_SWITCHES, /* a sample at each context switch, which tells exactly where the thread left its CPU */
    SMP_ENTRIES,  /* of system calls, */
    SMP_EXITS,    /* and from them; where they are asked for */
    SMP_OF_THREAD,
    SMP_WAKINGS = SMP_OF_THREAD, /* of the target's threads, and by them */
    SMP_KINDS
};

struct smp_attr {
    struct perf_event_attr attr;

    const char *name; /* as perf names it; NULL: there are none of this kind */
};

/* The events of a thread (or of a CPU), a group that the samples lead. */
struct smp_event {
    int fd[SMP_OF_THREAD]; /* -1: there is none, or this user may have none */

    uint64_t id[SMP_OF_THREAD];

    pid_t pid, tid; /* -1: whoever runs */

    int cpu; /* -1: wherever it runs */

    size_t ring; /* all write into */

    bool late; /* its thread was born while the target was listed: it may have inherited events besides */
};

/* The wake-ups on a CPU. */
struct smp_wake {
    int fd;

    uint64_t id;

    struct smp_pace pace;
};

/* How often a thread was switched as its events were about to be opened. */
struct smp_guess {
    pid_t tid; /* -1: all threads of the machine */

    uint64_t switches;
};

/* What the budget leaves out. */
struct smp_budget {
    bool none; /* the user wants all */

    bool may_slow; /* how often to sample was not asked for */

    int timer; /* to look again; -1: there is none */

    uint64_t looked; /* perf clock: when it was looked last */

    struct smp_cost cost;

    ST_VEC(struct smp_guess) guess;

    uint64_t since; /* perf clock: since when something is left out; 0: nothing was */

    unsigned switches, wakes; /* at most one in so many was sampled */

    unsigned rate; /* samples a second, the fewest that a thread has */

    uint64_t paused_at,
        paused; /* what trg_select_lost() was at the last freeze; and how much of it fell into pauses */

    bool told, told_lost;
};

struct rec_source {
    struct smp_attr kinds[SMP_KINDS];

    smp_cores cores; /* of a processor with cores of several kinds */

    struct rec_clock clock;

    enum rec_callgraph callgraph;

    unsigned frequency;

    bool per_cpu; /* rings are of CPUs, else of threads */

    bool by_name; /* processes of a name are the target */

    struct trg_select *select; /* not NULL: events are CPU-wide, and it decides what is written; not owned */

    bool running; /* enabled, or waiting for exec */

    bool any_late;

    bool too_large; /* the limits refused the size of a ring */

    bool told_unrecorded; /* that threads have no ring */

    unsigned rounds; /* listings of the process that is being opened */

    struct rec_ring_total total; /* of rings of threads, or of CPUs */

    size_t wanted, asked, ring_bytes; /* bytes a ring: as wanted, as the total has it, as it became */

    rec_cpu_list cpus; /* to open events on; of rings a thread only -1 */

    ST_VEC(struct smp_ring) rings;

    ST_VEC(struct smp_event) events;

    ST_VEC(struct smp_wake) wakes;

    ST_VEC(struct smp_ring) wake_rings; /* one a CPU */

    ST_VEC(pid_t) woken; /* the threads whose wake-ups are recorded, */

    pid_t woken_from; /* and all that have this number or a higher one; 0: all */

    char no_wakes[64]; /* why there are none; "": there are */

    ST_VEC(struct rec_ring) told; /* of the freeze */

    ST_VEC(uint64_t) ids; /* told by record_event */

    struct smp_budget budget;
};

/* event.c: the attributes for a configuration, as far as s->frequency, s->per_cpu, s->callgraph and s->cores
 * say. Uses the processor's cycles where they can be counted, else the CPU's clock. 0, or ST_ECANNOT. */
int smp_event_attr(struct rec_source *s, const struct rec_source_config *config, struct st_error *err);

/* Opens the events of a thread (tid -1: whoever runs) on a CPU (-1: wherever it runs), disabled. 0, 1:
 * the thread has ended; or ST_ECANNOT, ST_EFAIL with nothing open. */
int smp_event_open(const struct rec_source *s, struct smp_event *event, struct st_error *err);

/* Turns the attribute of a tracepoint's event into that of one that a BPF program writes the same records
 * into. */
void smp_event_by_program(struct perf_event_attr *attr);

/* Makes all write into the ring of `owner`. */
int smp_event_join(const struct smp_event *event, int owner, struct st_error *err);

/* A thread that has ended is no error. */
int smp_event_switch(const struct smp_event *event, bool on, struct st_error *err);

void smp_event_close(struct smp_event *event);

/* rate.c: how many samples a second cost a busy thread one part in a hundred, as measured on this one. */
unsigned smp_rate_default(const struct perf_event_attr *attr);

/* The most samples a second that the kernel allows (kernel.perf_event_max_sample_rate). */
unsigned smp_rate_most(void);

/* source.c: rec_source_ops.look. */
bool smp_look(struct rec_source *s);

/* attach.c: opens the events and rings of the whole target, disabled. The rings' size is halved as long as
 * the limits refuse it. */
int smp_attach(struct rec_source *s, const struct rec_source_config *config, struct st_error *err);

/* A ring for a thread that was born while armed, of the rings-a-thread kind; nothing if it has one, has
 * ended, or there is no room for one, or the limits allow none (which is told once). */
int smp_attach_born(struct rec_source *s, pid_t pid, pid_t tid, struct st_error *err);

/* The same for each thread of a process that came into the target; in rings of CPUs too. */
int smp_attach_joined(struct rec_source *s, pid_t pid, struct st_error *err);

/* Closes all events and rings. */
void smp_detach(struct rec_source *s);

/* pace.c: what context switches cost is measured, and how often the target's threads are switched begins to
 * be counted. To be called before the events are opened. 0, ST_ENOMEM, ST_EFAIL. */
int smp_pace_open(struct rec_source *s, const struct rec_source_config *config, struct st_error *err);

/* Before the events begin to count: what was counted since smp_pace_open() decides how many are sampled. */
void smp_pace_begin(struct rec_source *s);

/* Looks how many there were since the last look, and samples fewer of them, or more. A user is told the first
 * time that fewer are. */
void smp_pace_look(struct rec_source *s);

/* ", one context switch in 7": the end of the armed line; "" where all are sampled. */
void smp_pace_describe(const struct rec_source *s, char *text, size_t size);

/* "since=TIME switches=7 wakes=7 rate=99 of=599", for the snapshot's description; "" where nothing was left
 * out. */
void smp_pace_meta(struct rec_source *s, char *text, size_t size);

void smp_pace_close(struct rec_source *s);

/* wake.c: opens the events and rings of the wake-ups of the whole target, disabled; of threads that are born
 * later too. What is refused (a user may have none, limits) is told in s->no_wakes. 0, ST_ENOMEM, ST_EFAIL.
 */
int smp_wake_attach(struct rec_source *s, const struct rec_source_config *config, struct st_error *err);

int smp_wake_start(struct rec_source *s, struct st_error *err);

/* The CPUs whose wake-ups are still recorded, appended: the clock of an event stands once its CPU has gone. 0
 * or -1. */
int smp_wake_alive(const struct rec_source *s, rec_cpu_list *cpus);

/* A thread was born. */
void smp_wake_born(struct rec_source *s, pid_t tid);

void smp_wake_detach(struct rec_source *s);

#endif
