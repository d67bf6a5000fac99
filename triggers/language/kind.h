/* What a kind of trigger is to the rest of the room: a row of the table in kinds.c. */
#ifndef ST_TRIGGERS_LANGUAGE_KIND_H
#define ST_TRIGGERS_LANGUAGE_KIND_H

#include "triggers/bpf/config.h"
#include "triggers/language/options.h"
#include "triggers/trigger.h"

struct trg_state; /* each kind has its own */

struct trg_key {
    const char *name; /* NULL ends the table */

    const char *expects; /* "blocked, sleeping or preempted" */

    const char *separator; /* KEY=A+B, or KEY=A,B; "&&": KEY=A&&B; NULL: one value */

    /* Takes one word into the options. False: it does not know the word. */
    bool (*set)(struct trg_options *options, const char *word);

    /* The words that `set` knows, for "did you mean"; at most `room`. Returns how many. */
    size_t (*words)(const char **out, size_t room);
};

/* KIND:WHAT */
struct trg_name {
    bool needed;

    const char *expects; /* "the name of a system call" */

    bool (*set)(struct trg_options *options, const char *word); /* as trg_key.set */

    size_t (*words)(const char **out, size_t room);
};

struct trg_spec {
    const struct trg_kind *kind;

    char *text; /* as written */

    uint64_t threshold_ns; /* 0: the kind takes none */

    bool worst; /* ">worst" */

    struct trg_options *options;
};

struct trg_open {
    const struct trg_spec *spec;

    const struct trg_config *config;

    uint32_t trigger; /* number of the --on */
};

/* Receives a thread's histogram; not 0 ends the walk with that. */
typedef int trg_thread_fn(void *ctx, const struct thread_hist *thread, struct st_error *err);

/* Receives a place, or the total, of a process or of a thread; not 0 ends the walk with that. */
typedef int trg_wait_fn(void *ctx, const struct wait_key *key, const struct wait_place *place,
                        struct st_error *err);

struct trg_kind {
    const char *name;

    enum st_stall_kind record_kind;

    const char *example; /* "offcpu>20ms" */

    const char *measures; /* "time off the CPU": heads the histogram */

    const struct trg_name *takes; /* NULL: no WHAT */

    bool hits; /* each hit fires: no threshold */

    bool own_programs; /* the user's, who knows what they need of the kernel: trg_check_needs() is not for
                          them */

    const struct trg_key *keys;

    /* As the functions of trigger.h with the same names; `open` leaves nothing behind on error. */
    int (*open)(const struct trg_open *how, struct trg_state **state, struct st_error *err);
    int (*set_output)(struct trg_state *state, int cpu, int fd, struct st_error *err);
    int (*start)(struct trg_state *state, struct st_error *err);

    /* NULL: it need not know. */
    int (*joined)(struct trg_state *state, pid_t pid, struct st_error *err);

    /* Nothing fires before this CLOCK_MONOTONIC time. */
    void (*hold)(struct trg_state *state, uint64_t until_ns);

    void (*complete)(struct trg_state *state, struct st_stall_record *record);

    /* Of all threads together, those of `threads` among them. */
    int (*histogram)(struct trg_state *state, struct hist *sum, struct st_error *err);

    /* Each thread's own, while threads are told apart (trg_config.by_thread); in no order. */
    int (*threads)(struct trg_state *state, trg_thread_fn *fn, void *ctx, struct st_error *err);

    /* Where threads waited for work; in no order. NULL: nobody asks this kind. */
    int (*waits)(struct trg_state *state, trg_wait_fn *fn, void *ctx, struct st_error *err);
    uint64_t (*lost)(struct trg_state *state);
    void (*close)(struct trg_state *state);

    /* Whether what it measures has not begun at all since it was started; `text` says so: "not called since
     * armed". Once it has begun, what only this needs is given up. NULL: nobody asks this kind. */
    bool (*unseen)(struct trg_state *state, char *text, size_t size);

    bool unseen_at_once; /* to be told while it waits, not at the end only */

    /* By what it sees, for the armed line: "uprobe". NULL, or NULL returned: there is one way only. */
    const char *(*hook)(struct trg_state *state);

    /* "off-CPU 40.2 ms in recvfrom, woken by ...": what follows the thread's name. */
    void (*describe)(const struct st_stall_record *record, trg_ksym_fn *name, void *ctx, char *text,
                     size_t size);
};

/* Whether its keys have idle=learned. */
bool trg_can_learn(const struct trg_kind *kind);

/* All kinds; NULL-terminated. */
extern const struct trg_kind *const trg_kinds[];

extern const struct trg_kind trg_offcpu;
extern const struct trg_kind trg_syscall;
extern const struct trg_kind trg_runq;
extern const struct trg_kind trg_func;
extern const struct trg_kind trg_call;
extern const struct trg_kind trg_busy;
extern const struct trg_kind trg_quiet;
extern const struct trg_kind trg_socket;
extern const struct trg_kind trg_irq;
extern const struct trg_kind trg_softirq;
extern const struct trg_kind trg_tracepoint;
extern const struct trg_kind trg_usdt;
extern const struct trg_kind trg_bpf;
extern const struct trg_kind trg_bpftrace;

#endif
