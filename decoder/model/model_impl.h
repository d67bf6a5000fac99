/* Inside of the model (this folder and db/ only). */
#ifndef ST_DECODER_MODEL_MODEL_IMPL_H
#define ST_DECODER_MODEL_MODEL_IMPL_H

#include "decoder/model/gap.h"
#include "decoder/model/length.h"
#include "decoder/model/model.h"
#include "decoder/model/samples/samples.h"
#include "decoder/model/symbols.h"
#include "tracedb/calls.h"

#include <pthread.h>

/* What a thread of ours that makes calls keeps for itself. */
struct model_view {
    struct dec_symbols_view *symbols;

    struct dec_lengths *lengths;
};

/* Symbols in the order in which they were first used. */
struct model_symbols {
    ST_VEC(uint32_t) list;

    uint64_t *seen; /* a bit each */

    size_t nseen; /* words */
};

/* A thread that was decoded. */
struct model_thread {
    struct dec_model *model;

    struct dec_thread *thread;

    struct dec_stack *stack;

    struct model_view *view; /* of who makes its calls now */

    struct model_symbols used; /* by its calls */

    size_t ring; /* the first in which it turned up, of a thread that the side-band does not know */

    struct tdb_calls calls;

    uint64_t first, last; /* times of the first and the last branch or sample; first UINT64_MAX: none */

    bool sampled; /* its calls are made of samples */

    int64_t base; /* row id of the first call, less one; known when rows are written */
};

/* A run of one thread's branches in the ring of a CPU. */
struct model_run {
    struct model_thread *thread;

    uint64_t time;

    size_t ring, n;

    struct st_spool_place place;

    size_t order;
};

typedef ST_VEC(struct model_run) model_runs;

/* What the next event of a run is packed against. */
struct model_packed {
    uint64_t time, to;

    int32_t cpu;
};

struct model_mark {
    const struct dec_thread *thread; /* NULL: none */

    int32_t cpu;

    uint64_t time;

    const char *name;

    char detail[128];
};

typedef ST_VEC(struct model_mark) model_marks;

/* What was taken of a ring. Of several rings at once, each has one thread of ours that writes to it. */
struct model_ring {
    struct st_spool events; /* of a CPU: branches that wait */

    model_runs runs; /* likewise */

    model_marks marks;

    struct dec_gaps gaps;

    struct st_error error;

    struct model_packed packed;

    uint64_t first, last; /* times of branches */

    uint64_t idle; /* counts of events that were not kept, as dec_event.arg, for the next one of the run */

    size_t pause; /* the next one that it may have had */

    bool overwritten; /* it began with the gap of what was overwritten */
};

/* A frame of a stack whose line is to be found. */
struct model_frame {
    int64_t stack;

    int depth;

    struct dec_image *image;

    uint64_t address; /* in the image's own addresses */
};

struct dec_model {
    struct dec_sideband *sb;

    struct dec_symbols *symbols;

    struct dec_inlines *inlines; /* NULL: not wanted */

    unsigned workers; /* threads that make calls, 1 at least */

    struct model_view view; /* of the thread that works alone */

    struct dec_model_feed *feed; /* of dec_model_emit */

    pthread_mutex_t lock; /* of `threads` and `unheard`, while rings are taken */

    struct model_thread **threads; /* by the index of the side-band's thread; NULL: not decoded */

    size_t nthreads;

    ST_VEC(struct model_thread *) unheard; /* whose threads the side-band does not have yet */

    struct model_ring *rings;

    model_runs runs; /* of all rings, when they are there */

    model_marks marks; /* likewise */

    ST_VEC(struct model_frame) frames; /* of the stacks of stalls, without the kernel's */

    struct dec_gaps gaps;

    struct st_spill *spill; /* the caller's; NULL: all stays in memory */

    uint64_t origin; /* perf ns of time 0 in the database */

    uint32_t *symbol_ids,
        *module_ids; /* row ids, less one, by the index in `symbols`; NULL: the index is it */

    size_t nsymbol_ids, nmodule_ids;

    struct st_error error;
};

/* A thread's way into the model. */
struct dec_model_feed {
    struct dec_model *model;

    struct model_view view;
};

/* ---- model.c ---- */

/* The thread that had a tid at a time, as it is decoded. NULL: no memory. */
struct model_thread *model_thread_of(struct dec_model *m, int32_t pid, int32_t tid, int32_t cpu,
                                     uint64_t time);

/* The function at an address; `ctx` is the thread. NULL: no memory. */
const struct dec_function *model_function_at(void *ctx, uint64_t time, uint64_t address);

int model_view_new(struct dec_model *m, struct model_view *view, struct st_error *err);
void model_view_free(struct model_view *view);

/* ---- numbers.c ---- */

/* Calls of a thread name those symbols. 0 or -1 (no memory). */
int model_use_symbols(struct model_symbols *used, const struct tdb_span *calls, size_t n);

/* Numbers symbols and modules so that it does not matter in which order they were met: by the calls, thread
 * after thread, and the rest by name. 0 or -1 (no memory). */
int model_number_symbols(struct dec_model *m);

/* ---- events.c: 0, or a st_code with the ring's error ---- */

/* Whether there is one ring only: its branches come in the order of time, and become calls at once. */
bool model_is_alone(const struct dec_model *m);

/* Takes events of a thread from the ring of a CPU. */
int model_keep_events(struct dec_model_feed *feed, size_t ring, struct model_thread *t,
                      const struct dec_event *events, size_t n);

/* A gap of the ring, which is one of the thread's too. In a model with several rings, when `runs` of all are
 * together. */
int model_keep_gap(struct dec_model *m, size_t ring, struct model_thread *t, uint64_t time, int32_t cpu);

/* Makes calls of a run that was kept. */
int model_build_run(const struct model_run *run, struct st_spool_reader *r, struct st_error *err);

/* ---- build.c: 0, or a negative st_code ---- */

/* Makes calls of all that was kept, and ends the stacks. */
int model_build(struct dec_model *m, struct st_error *err);

/* ---- waits.c ---- */

/* A wait that an offcpu trigger told of. */
struct model_wait {
    uint64_t start; /* perf ns */

    const struct st_stall_record *kernel,
        *user; /* have its stacks, as long as the side-band lives; NULL: not known */

    int32_t tid, cpu;
};

typedef ST_VEC(struct model_wait) model_waits; /* sorted by tid, then start */

/* Each wait once, whether a record told of it as it went on, as it ended, or both did. 0 or -1 (no memory).
 */
int model_waits_gather(const struct dec_sideband *sb, model_waits *waits);

/* The first wait of the thread, or of one with a higher tid, that began at `from` or later; waits->n: there
 * is none. */
size_t model_waits_find(const model_waits *waits, int32_t tid, uint64_t from);

/* ---- sample_gaps.c ---- */

/* The period of samples, ns; 0: not to be told (there are none, or of an event that does not count time). */
uint64_t model_sample_period(const struct dec_model *m);

/* The loss between two chains of a thread; NULL: none is known of. */
const struct dec_notice *model_loss_between(const struct dec_model *m, const struct dec_thread *thread,
                                            const struct dec_chain *before, const struct dec_chain *after);

/* Notes gaps where a thread that had a CPU was not sampled: the (virtual) machine stood still, or interrupts
 * were off. 0 or -1 (no memory). */
int model_sample_holes(struct dec_model *m, struct dec_thread *thread, const struct dec_chain *chains,
                       size_t n);

/* Samples that the recorder did not take since a moment, so that they cost no more than they may. */
struct model_left_out {
    uint64_t since; /* UINT64_MAX: none */

    unsigned switches, wakes; /* at least one in so many was sampled */

    unsigned rate, of; /* samples a second, the fewest of a thread; and as they were meant */
};

struct model_left_out model_left_out(const struct dec_model *m);

/* Whether samples are missing behind the notice. */
bool model_samples_break(const struct dec_notice *notice);

/* Whether a thread was sampled from its birth on: before its first sample is less than a period, or a wait.
 */
bool model_from_birth(const struct dec_sideband *sb, const struct dec_thread *thread);

/* ---- points.c: the marks of tracepoints' samples, and what is missing of them. 0 or a negative
 * st_code. ---- */
int model_points(struct dec_model *m, struct st_error *err);

/* ---- waiting.c: marks of how threads waited as the snapshot was made. 0 or -1. ---- */
int model_waiting(struct dec_model *m);

/* What is missing of the threads that were sampled. 0 or -1. */
int model_gaps_of_samples(struct dec_model *m);

/* ---- gaps.c ---- */

/* A gap in a ring's decoding. 0 or -1. */
int model_gap_event(struct dec_model *m, uint32_t ring, struct dec_thread *thread, const struct dec_event *e,
                    const char *detail);

/* The ring's decoding goes on at `time`: ends its open gap. 0, or a st_code with the ring's error. */
int model_gap_closes(struct dec_model *m, uint32_t ring, uint64_t time);

/* What the gaps of the rings of CPUs hide of the other threads that ran there. 0, or a st_code with
 * dec_model.error. */
int model_gaps_of_cpus(struct dec_model *m);

/* What is missing before each thread's first branch, and what the side-band lost. 0 or -1. */
int model_gaps_of_threads(struct dec_model *m);

/* How many of a ring's next events are before the next pause that it had (n: there is none); the gap that
 * stands there is *gap. */
size_t model_find_pause(struct dec_model *m, const struct dec_stream_info *info,
                        const struct dec_event *events, size_t n, struct dec_event *gap);

/* Takes the first CPU from a list like "1,3" (NULL: an empty one). False: there is none. */
bool model_next_cpu(const char **list, int32_t *cpu);

/* ---- reason.c: text about a stall ---- */

/* "offcpu"; "?" for a kind nobody knows. */
const char *model_stall_kind(unsigned kind);

/* The state that the thread was in meanwhile, where the kind measures it or the record has one of its last
 * wait; NULL: not measured. buf needs 32 bytes. */
const char *model_measured_state(const struct st_stall_record *s, char *buf, size_t size);

/* The system call that the whole stall was in, or that it is in now; -1: none, or not measured. Of a loop
 * that came back (busy) the record has the longest of several. */
int32_t model_in_syscall(const struct st_stall_record *s);

/* "thread 12 \"name\""; "thread 12" where the name is not known, "". */
const char *model_thread_text(uint32_t tid, const char *name, char *buf, size_t size);

/* "thread 12 \"name\"", "softirq NET_RX" ...; "" where nobody woke it. `by_timer`: the waker's stack has a
 * timer that was set for the thread's own wait. */
const char *model_waker(const struct st_stall_record *s, bool by_timer, char *buf, size_t size);

/* The one-line sentence. `timer` and `waker` "" where there is none; the stall lasted `duration` ns;
 * `going_on`: and longer. */
void model_reason(const struct st_stall_record *s, uint64_t duration, bool going_on, const char *waker,
                  const char *timer, char *text, size_t size);

#endif
