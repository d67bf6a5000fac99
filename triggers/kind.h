/* What a kind of trigger is to the rest of the room: a row of the table in kinds.c. */
#ifndef ST_TRIGGERS_KIND_H
#define ST_TRIGGERS_KIND_H

#include "triggers/config.h"
#include "triggers/trigger.h"

struct trg_state; /* each kind has its own */

struct trg_key {
    const char *name; /* NULL ends the table */

    const char *expects; /* "blocked, sleeping or preempted" */

    bool list; /* KEY=A+B, or KEY=A,B */

    /* Takes one word into the kind's options. False: it does not know the word. */
    bool (*set)(void *options, const char *word);

    /* The words that `set` knows, for "did you mean"; at most `room`. Returns how many. */
    size_t (*words)(const char **out, size_t room);
};

struct trg_spec {
    const struct trg_kind *kind;

    char *text; /* as written */

    uint64_t threshold_ns;

    bool worst; /* ">worst" */

    void *options; /* kind->options_size bytes */
};

struct trg_open {
    const struct trg_spec *spec;

    const struct trg_config *config;

    uint32_t trigger; /* number of the --on */
};

struct trg_kind {
    const char *name;

    enum st_stall_kind record_kind;

    const char *example; /* "offcpu>20ms" */

    const char *measures; /* "time off the CPU": heads the histogram */

    size_t options_size;

    const struct trg_key *keys;

    void (*defaults)(void *options);

    /* As the functions of trigger.h with the same names; `open` leaves nothing behind on error. */
    int (*open)(const struct trg_open *how, struct trg_state **state, struct st_error *err);
    int (*set_output)(struct trg_state *state, int cpu, int fd, struct st_error *err);
    int (*start)(struct trg_state *state, struct st_error *err);

    /* Nothing fires before this CLOCK_MONOTONIC time. */
    void (*hold)(struct trg_state *state, uint64_t until_ns);

    void (*complete)(struct trg_state *state, struct st_stall_record *record);
    int (*histogram)(struct trg_state *state, struct hist *sum, struct st_error *err);
    uint64_t (*lost)(struct trg_state *state);
    void (*close)(struct trg_state *state);

    /* "off-CPU 40.2 ms in recvfrom, woken by ...": what follows the thread's name. */
    void (*describe)(const struct st_stall_record *record, trg_ksym_fn *name, void *ctx, char *text,
                     size_t size);
};

/* All kinds; NULL-terminated. */
extern const struct trg_kind *const trg_kinds[];

extern const struct trg_kind trg_offcpu;

#endif
