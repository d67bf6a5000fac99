/* A recording whose surroundings are made up. */
#include "arm_world.h"

#include "recorder/perf/record.h"
#include "recorder/snapshot/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store_list.h"

char steps[256];
struct rec_pause told[8];
size_t ntold;
static uint64_t now;
struct st_error error;
struct rec_first stopped_first;
uint32_t fires_as;
bool fails_freezing, fails_copying, fails_resuming, fails_writing, has_fired;

static void step(const char *what)
{
    strcat(steps, *steps ? " " : "");
    strcat(steps, what);
}

static int freeze(struct rec_source *s, struct rec_first first, struct rec_freeze *how, struct st_error *err)
{
    (void)s;
    stopped_first = first;
    step("freeze");
    *how = (struct rec_freeze){.asked_time = ++now};
    if (fails_freezing)
        return st_fail(err, ST_EFAIL, "cannot stop a ring");
    how->done_time = ++now;
    return 0;
}

static int rings(struct rec_source *s, const struct rec_ring **list, size_t *n, struct st_error *err)
{
    (void)s;
    step("copy");
    *list = NULL;
    *n = 0;
    return fails_copying ? st_nomem(err, "a copy of a ring") : 0;
}

static void describe(struct rec_source *s, char *text, size_t size)
{
    (void)s;
    snprintf(text, size, "fake");
}

static int resume(struct rec_source *s, struct st_error *err)
{
    (void)s;
    step("resume");
    return fails_resuming ? st_fail(err, ST_EFAIL, "cannot start a ring") : 0;
}

int __wrap_rec_clock_now(struct rec_clock *clock, uint64_t *ns, struct st_error *err);
int __wrap_rec_clock_now(struct rec_clock *clock, uint64_t *ns, struct st_error *err)
{
    (void)clock;
    (void)err;
    *ns = ++now;
    return 0;
}

int __wrap_rec_clock_moment(struct rec_clock *clock, struct rec_moment *moment, struct st_error *err);
int __wrap_rec_clock_moment(struct rec_clock *clock, struct rec_moment *moment, struct st_error *err)
{
    (void)clock;
    (void)err;
    *moment = (struct rec_moment){.perf = now};
    return 0;
}

struct stall_sample {
    struct rec_sample_head head;

    uint32_t size;

    char raw[sizeof(struct st_stall_record) + 12];
};

/* The events of BPF: each call finds what has fired since the last. */
int __wrap_rec_group_drain(struct rec_group *group, rec_perf_record_fn *fn, void *ctx, struct st_error *err);
int __wrap_rec_group_drain(struct rec_group *group, rec_perf_record_fn *fn, void *ctx, struct st_error *err)
{
    struct st_stall_record stall = {.magic = ST_STALL_MAGIC,
                                    .version = ST_STALL_VERSION,
                                    .kind = ST_STALL_OFFCPU,
                                    .flags = fires_as,
                                    .next_tid = fires_as & ST_STALL_COMPLETION ? 42 : 0,
                                    .seq = 7,
                                    .tid = 4312,
                                    .cpu = 3};
    struct stall_sample sample;

    (void)group;
    if (!has_fired)
        return 0;
    has_fired = false;
    memset(&sample, 0, sizeof(sample));
    sample.head.header = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = sizeof(sample)};
    sample.head.time = ++now;
    sample.size = sizeof(sample.raw);
    memcpy(sample.raw, &stall, sizeof(stall));
    return fn(ctx, &sample.head.header, err);
}

void __wrap_trg_complete(struct trg_set *set, struct st_stall_record *record);
void __wrap_trg_complete(struct trg_set *set, struct st_stall_record *record)
{
    (void)set;
    step("complete");
    record->next_tid = 42;
}

const struct trg_frames *__wrap_trg_frames(const struct trg_set *set);
const struct trg_frames *__wrap_trg_frames(const struct trg_set *set)
{
    static const struct trg_frames none;

    (void)set;
    return &none;
}

int __wrap_trg_hold(struct trg_set *set, uint64_t ns, struct st_error *err);
int __wrap_trg_hold(struct trg_set *set, uint64_t ns, struct st_error *err)
{
    (void)set;
    (void)ns;
    (void)err;
    return 0;
}

const char *__wrap_trg_text(const struct trg_set *set, size_t i);
const char *__wrap_trg_text(const struct trg_set *set, size_t i)
{
    (void)set;
    (void)i;
    return "offcpu>20ms";
}

void __wrap_trg_describe(const struct trg_set *set, const struct st_stall_record *record, trg_ksym_fn *name,
                         void *ctx, char *text, size_t size);
void __wrap_trg_describe(const struct trg_set *set, const struct st_stall_record *record, trg_ksym_fn *name,
                         void *ctx, char *text, size_t size)
{
    (void)set;
    (void)name;
    (void)ctx;
    (void)text;
    (void)size;
    assert_int_equal(record->next_tid, 42); /* the sentence is of the completed record */
}

uint64_t __wrap_trg_lost(struct trg_set *set);
uint64_t __wrap_trg_lost(struct trg_set *set)
{
    (void)set;
    return 0;
}

int __wrap_rec_sideband_drain(struct rec_sideband *sideband, struct st_error *err);
int __wrap_rec_sideband_drain(struct rec_sideband *sideband, struct st_error *err)
{
    (void)sideband;
    (void)err;
    return 0;
}

const rec_pid_set *__wrap_rec_sideband_pids(const struct rec_sideband *sideband);
const rec_pid_set *__wrap_rec_sideband_pids(const struct rec_sideband *sideband)
{
    static const rec_pid_set none;

    (void)sideband;
    return &none;
}

int __wrap_rec_snapshot_next(int folder, const char *prefix, unsigned *n, struct st_error *err);
int __wrap_rec_snapshot_next(int folder, const char *prefix, unsigned *n, struct st_error *err)
{
    (void)folder;
    (void)prefix;
    (void)err;
    *n = 1;
    return 0;
}

static bool view_holds_completed(const struct rec_view *view)
{
    struct rec_stored *all;
    uint64_t raw[REC_RAW_WORDS];
    bool found = false;
    size_t at;

    assert_int_equal(rec_view_sorted(view, &all, NULL), 0);
    for (size_t i = 0; i < view->n; i++)
        found = found ||
                (rec_sample_raw(all[i].record, raw, &at) && ((struct st_stall_record *)raw)->next_tid == 42);
    free(all);
    return found;
}

bool holds_completed(const struct rec_store *store)
{
    struct rec_view view;
    bool found;

    assert_int_equal(rec_store_view(store, &view), 0);
    found = view_holds_completed(&view);
    rec_view_free(&view);
    return found;
}

int __wrap_rec_facts_take(struct rec_facts *facts, const struct rec_source_ops *ops,
                          struct rec_source *source, const struct rec_sideband *sideband,
                          const struct rec_store *store, const struct rec_group *stalls,
                          const struct st_target *target, struct st_error *err);
int __wrap_rec_facts_take(struct rec_facts *facts, const struct rec_source_ops *ops,
                          struct rec_source *source, const struct rec_sideband *sideband,
                          const struct rec_store *store, const struct rec_group *stalls,
                          const struct st_target *target, struct st_error *err)
{
    (void)ops;
    (void)source;
    (void)sideband;
    (void)stalls;
    (void)target;
    (void)err;
    *facts = (struct rec_facts){0};
    return rec_store_view(store, &facts->sideband);
}

int __wrap_rec_room_fill(const struct rec_room *room, int folder, const char *name,
                         const struct perf_event_header *end, const struct rec_kallsyms *kallsyms,
                         struct st_error *err);
int __wrap_rec_room_fill(const struct rec_room *room, int folder, const char *name,
                         const struct perf_event_header *end, const struct rec_kallsyms *kallsyms,
                         struct st_error *err)
{
    (void)folder;
    (void)kallsyms;
    (void)err;
    assert_int_equal(room->size, 24576);
    assert_string_equal(name, "none.1.data");
    assert_int_equal(end->type, PERF_RECORD_SAMPLE);
    step("fill");
    return 0;
}

/* The clerk works when it is told to. */
struct rec_task *given[4];
size_t ngiven;
static size_t nbusy;

/* Writes one of them, and hands it back. */
void hand_back(struct arm *arm)
{
    struct rec_task *task = given[0];

    memmove(given, given + 1, --ngiven * sizeof(given[0]));
    task->work(task);
    nbusy--;
    assert_int_equal(arm_on_written(arm, task, &error), 0);
}

void __wrap_rec_clerk_give(struct rec_clerk *clerk, struct rec_task *task);
void __wrap_rec_clerk_give(struct rec_clerk *clerk, struct rec_task *task)
{
    (void)clerk;
    given[ngiven++] = task;
    nbusy++;
}

void hand_all_back(struct arm *arm)
{
    while (ngiven)
        hand_back(arm);
}

size_t __wrap_rec_clerk_busy(const struct rec_clerk *clerk);
size_t __wrap_rec_clerk_busy(const struct rec_clerk *clerk)
{
    (void)clerk;
    return nbusy;
}

int __wrap_arm_limits_again(struct arm *arm, struct st_error *err);
int __wrap_arm_limits_again(struct arm *arm, struct st_error *err)
{
    (void)arm;
    (void)err;
    return 0;
}

int __wrap_rec_snapshot_write(const struct rec_snapshot *s, const char *path, struct rec_written *file,
                              struct st_error *err);
int __wrap_rec_snapshot_write(const struct rec_snapshot *s, const char *path, struct rec_written *file,
                              struct st_error *err)
{
    (void)path;
    *file = (struct rec_written){0};
    if (s->room)
        *s->room = (struct rec_room){.size = 24576};
    step("write");
    if (fails_writing)
        return st_fail(err, ST_EFAIL, "the disk is full");
    ntold = s->npauses;
    assert_true(ntold <= sizeof(told) / sizeof(told[0]));
    for (size_t i = 0; i < ntold; i++)
        told[i] = s->pauses[i];
    if (s->fired) {
        assert_int_equal(s->fired->next_tid, 42);
        assert_true(view_holds_completed(&s->facts->sideband));
    }
    return 0;
}

int __wrap_rec_jobs_add(struct rec_jobs *jobs, const char *data, const char *db,
                        const struct rec_written *file, const char *reason, unsigned flags,
                        struct st_error *err);
int __wrap_rec_jobs_add(struct rec_jobs *jobs, const char *data, const char *db,
                        const struct rec_written *file, const char *reason, unsigned flags,
                        struct st_error *err)
{
    (void)jobs;
    (void)data;
    (void)db;
    (void)file;
    (void)reason;
    (void)flags;
    (void)err;
    return 0;
}

size_t __wrap_rec_jobs_waiting(const struct rec_jobs *jobs);
size_t __wrap_rec_jobs_waiting(const struct rec_jobs *jobs)
{
    (void)jobs;
    return 0;
}

int __wrap_rec_jobs_go(struct rec_jobs *jobs, struct st_error *err);
int __wrap_rec_jobs_go(struct rec_jobs *jobs, struct st_error *err)
{
    (void)jobs;
    (void)err;
    return 0;
}

int __wrap_arm_limits_next(struct arm *arm, bool trapped, struct st_error *err);
int __wrap_arm_limits_next(struct arm *arm, bool trapped, struct st_error *err)
{
    (void)arm;
    (void)trapped;
    (void)err;
    return 0;
}

struct rec_kallsyms *__wrap_rec_kallsyms_open(const char *path);
struct rec_kallsyms *__wrap_rec_kallsyms_open(const char *path)
{
    (void)path;
    return NULL;
}

static const struct rec_source_ops ops = {.name = "fake",
                                          .freeze = freeze,
                                          .rings = rings,
                                          .resume = resume,
                                          .describe = describe,
                                          .misses_while_frozen = true};

int begin_arm(void **state)
{
    struct arm *arm = calloc(1, sizeof(*arm));

    assert_non_null(arm);
    arm->ops = &ops;
    arm->clerk = (struct rec_clerk *)arm;
    arm->jobs = (struct rec_jobs *)arm;
    ngiven = nbusy = 0;
    arm->state = ARM_ARMED;
    arm->options.prefix = "none";
    arm->options.triggers = (struct trg_set *)arm; /* nobody looks into it */
    assert_int_equal(rec_store_open(&(struct rec_store_bounds){0}, &arm->store, NULL), 0);
    steps[0] = '\0';
    ntold = 0;
    now = 1000;
    fires_as = ST_STALL_FIRED;
    fails_freezing = fails_copying = fails_resuming = fails_writing = has_fired = false;
    *state = arm;
    return 0;
}

int end_arm(void **state)
{
    struct arm *arm = *state;

    free(arm->last_data);
    free(arm->last_db);
    rec_store_close(arm->store);
    st_vec_free(&arm->pauses);
    st_vec_free(&arm->incomplete);
    arm_forget_open(arm);
    free(arm);
    return 0;
}
