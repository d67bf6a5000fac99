/* What the BPF objects of all kinds have in common, handled in one place: whom they follow, where their
 * records go, how they are attached, what is read back. */
#ifndef ST_TRIGGERS_KIT_H
#define ST_TRIGGERS_KIT_H

#include "triggers/bpf/span.h"
#include "triggers/language/kind.h"
#include "triggers/needs.h"

#include <bpf/libbpf.h>
#include <sys/types.h>

#define TRG_LINKS 64

/* Variables that every kind's programs have, in the memory they share with them. */
struct trg_vars {
    struct follow_config *follow;

    long *preempt_count_place, *current_task_place;

    uint64_t *wake_up_start, *wake_up_end;

    uint64_t *threshold_ns, *hold_until_ktime, *lost_threads, *lost_records;

    uint64_t *lost_hists;

    uint32_t *slots_max, *without_timer, *broken_places, *by_thread, *look_tid;

    struct bpf_map *threads, *free_slots, *cpus, *pids, *events, *hist, *first_hists, *thread_hists;
};

struct trg_state {
    struct trg_open how; /* its pointers stay valid until close */

    void *skeleton; /* of bpftool's making */

    struct bpf_object_skeleton *parts;

    struct bpf_object *object;

    struct trg_vars vars;

    struct span_config *span; /* NULL: offcpu */

    bool own_filter; /* the kind itself has set span->filter */

    struct bpf_map *waits; /* waits.bpf.h; NULL: the kind has none */

    struct bpf_map *pythons; /* python.bpf.h; NULL: its stalls are not at one place of the program */

    struct bpf_program *adopt, *look_at; /* iterators; look_at may be NULL */

    bool look_any; /* what goes on is not the thread's own: there is no number to compare */

    bool timers_later; /* a thread whose timer could not be made may get it later */

    struct bpf_link *links[TRG_LINKS]; /* attached by the kind itself */

    size_t nlinks;

    const char *hook; /* by what it sees; NULL: one way only */

    void *own; /* the kind's */

    void (*free_own)(void *own);
};

/* Fills a state from the skeleton `bpf` (a struct NAME_bpf *), just opened. */
#define TRG_TAKE(state, bpf)                                                                                 \
    do {                                                                                                     \
        (state)->skeleton = (bpf);                                                                           \
        (state)->parts = (bpf)->skeleton;                                                                    \
        (state)->object = (bpf)->obj;                                                                        \
        (state)->vars = (struct trg_vars){                                                                   \
            .follow = (void *)&(bpf)->rodata->follow,                                                        \
            .preempt_count_place = (void *)&(bpf)->rodata->preempt_count_place,                              \
            .current_task_place = (void *)&(bpf)->rodata->current_task_place,                                \
            .wake_up_start = (void *)&(bpf)->rodata->wake_up_start,                                          \
            .wake_up_end = (void *)&(bpf)->rodata->wake_up_end,                                              \
            .threshold_ns = (void *)&(bpf)->bss->threshold_ns,                                               \
            .hold_until_ktime = (void *)&(bpf)->bss->hold_until_ktime,                                       \
            .lost_threads = (void *)&(bpf)->bss->lost_threads,                                               \
            .lost_records = (void *)&(bpf)->bss->lost_records,                                               \
            .slots_max = &(bpf)->bss->slots_max,                                                             \
            .without_timer = &(bpf)->bss->without_timer,                                                     \
            .broken_places = &(bpf)->bss->broken_places,                                                     \
            .threads = (bpf)->maps.threads,                                                                  \
            .free_slots = (bpf)->maps.free_slots,                                                            \
            .cpus = (bpf)->maps.cpus,                                                                        \
            .pids = (bpf)->maps.pids,                                                                        \
            .events = (bpf)->maps.events,                                                                    \
            .hist = (bpf)->maps.hist,                                                                        \
            .first_hists = (bpf)->maps.first_hists,                                                          \
            .thread_hists = (bpf)->maps.thread_hists,                                                        \
            .lost_hists = (void *)&(bpf)->bss->lost_hists,                                                   \
            .by_thread = (void *)&(bpf)->rodata->by_thread,                                                  \
            .look_tid = &(bpf)->bss->look_tid,                                                               \
        };                                                                                                   \
    } while (0)

/* The same for a kind of spans. */
#define TRG_TAKE_SPAN(state, bpf)                                                                            \
    do {                                                                                                     \
        TRG_TAKE(state, bpf);                                                                                \
        (state)->span = (void *)&(bpf)->rodata->span;                                                        \
        (state)->adopt = (bpf)->progs.span_adopt;                                                            \
        (state)->look_at = (bpf)->progs.span_look_at;                                                        \
        bpf_program__set_autoattach((bpf)->progs.span_adopt, false);                                         \
        bpf_program__set_autoattach((bpf)->progs.span_look_at, false);                                       \
        if ((state)->how.config->measure_only) {                                                             \
            bpf_program__set_autoload((bpf)->progs.st_output, false);                                        \
            bpf_program__set_autoload((bpf)->progs.st_signal, false);                                        \
            bpf_program__set_autoload((bpf)->progs.span_look_at, false);                                     \
        }                                                                                                    \
    } while (0)

/* Without what tells who wakes a thread (context.bpf.h). */
#define TRG_NO_WAKERS(bpf)                                                                                   \
    do {                                                                                                     \
        bpf_program__set_autoload((bpf)->progs.st_softirq_raise, false);                                     \
        bpf_program__set_autoload((bpf)->progs.st_softirq_entry, false);                                     \
        bpf_program__set_autoload((bpf)->progs.st_timer_entry, false);                                       \
        bpf_program__set_autoload((bpf)->progs.st_timer_exit, false);                                        \
        bpf_program__set_autoload((bpf)->progs.st_irq_entry, false);                                         \
        bpf_program__set_autoload((bpf)->progs.st_irq_exit, false);                                          \
    } while (0)

/* A kind opens its skeleton, takes it (TRG_TAKE) and sets what is its own. */
typedef int trg_take_fn(struct trg_state *state, struct st_error *err);

/* trg_kind.open for every kind: makes the state, lets the kind take its skeleton, configures what is common,
 * loads. */
int trg_kit_open(const struct trg_open *how, trg_take_fn *take, struct trg_state **state,
                 struct st_error *err);

/* The others of trg_kind, as they are for nearly every kind. start: attaches what libbpf can attach by
 * itself, then begins to watch the threads that are there. complete: the stacks of a thread whose stall goes
 * on, and the names of the threads it tells of. */
int trg_kit_set_output(struct trg_state *s, int cpu, int fd, struct st_error *err);
int trg_kit_start(struct trg_state *s, struct st_error *err);
int trg_kit_joined(struct trg_state *s, pid_t pid, struct st_error *err);
void trg_kit_hold(struct trg_state *s, uint64_t until_ns);
void trg_kit_complete(struct trg_state *s, struct st_stall_record *r);
int trg_kit_histogram(struct trg_state *s, struct hist *sum, struct st_error *err);
int trg_kit_threads(struct trg_state *s, trg_thread_fn *fn, void *ctx, struct st_error *err);
int trg_kit_waits(struct trg_state *s, trg_wait_fn *fn, void *ctx, struct st_error *err);
uint64_t trg_kit_lost(struct trg_state *s);
const char *trg_kit_hook(struct trg_state *s);
void trg_kit_close(struct trg_state *s);

#define TRG_KIT_OPS                                                                                          \
    .set_output = trg_kit_set_output, .joined = trg_kit_joined, .hold = trg_kit_hold,                        \
    .complete = trg_kit_complete, .histogram = trg_kit_histogram, .threads = trg_kit_threads,                \
    .waits = trg_kit_waits, .lost = trg_kit_lost, .hook = trg_kit_hook, .close = trg_kit_close

/* Keeps a link (NULL with errno: the attempt failed) until close. `what` as in trg_bpf_failed(). */
int trg_kit_keep(struct trg_state *s, struct bpf_link *link, const char *what, struct st_error *err);

/* Loads the two programs that tell of io_uring's operations (uring.bpf.h) if a wait for them is `wanted`, and
 * the kernel tells. */
bool trg_choose_uring(const struct trg_state *s, struct bpf_program *submit, struct bpf_program *complete,
                      bool wanted);

/* What the programs are told of waits for work. */
void trg_kit_idle(const struct trg_state *s, struct idle_config *idle);

/* Runs an iterator that writes nothing. */
int trg_kit_walk(struct bpf_program *iterator, const char *what, struct st_error *err);

/* libbpf could not open a skeleton: errno says why. */
int trg_kit_no_skeleton(struct trg_state *s, struct st_error *err);

/* Fills a record with the names that only /proc knows. */
void trg_kit_name_threads(struct st_stall_record *r);

#endif
