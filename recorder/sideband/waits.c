/* Waits of which no mark was taken. */
#include "recorder/sideband/waits.h"
#include "base/syscalls.h"
#include "base/task_state.h"
#include "base/vec.h"
#include "recorder/perf/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 16384,
    OTHERS = 256, /* of other threads than the stalled one, a snapshot */
};

struct wait {
    uint64_t time, took;

    uint32_t pid, tid, cpu, state;

    int32_t syscall;

    bool compat, told;
};

struct rec_waits {
    uint64_t n; /* so many were taken; the next is number n % KEPT */

    struct wait at[KEPT];
};

struct mark {
    struct rec_sample_head head;

    uint32_t size; /* of what follows */

    struct st_mark_record mark;

    uint32_t padding;
};

int rec_waits_open(struct rec_waits **waits, struct st_error *err)
{
    *waits = calloc(1, sizeof(**waits));
    return *waits ? 0 : st_nomem(err, "the waits of threads");
}

void rec_waits_take(struct rec_waits *w, const struct select_switch *s)
{
    if (!s->left || !s->next_tid || s->time < s->left)
        return;
    w->at[w->n++ % KEPT] = (struct wait){.time = s->left,
                                         .took = s->time - s->left,
                                         .pid = s->next_pid,
                                         .tid = s->next_tid,
                                         .cpu = s->left_cpu,
                                         .state = s->state,
                                         .syscall = s->syscall,
                                         .compat = s->compat};
}

/* "sleeping in futex", as the decoder has it of a sample of sched:sched_switch. */
static void describe(const struct wait *wait, char *text, size_t size)
{
    char state[32], call[48];

    snprintf(text, size, "%s%s%s", st_switch_state(wait->state, state, sizeof(state)),
             wait->syscall >= 0 ? " in " : "",
             wait->syscall >= 0 ? st_syscall_name(wait->syscall, wait->compat, call, sizeof(call)) : "");
}

static int tell(struct wait *wait, uint64_t id, struct rec_store *store, struct st_error *err)
{
    struct mark m = {.head = {.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(m)},
                              .id = id,
                              .pid = wait->pid,
                              .tid = wait->tid,
                              .time = wait->time,
                              .cpu = wait->cpu},
                     .size = sizeof(m) - sizeof(m.head) - sizeof(m.size),
                     .mark = {.magic = ST_MARK_MAGIC, .version = ST_STALL_VERSION, .name = "offcpu"}};

    describe(wait, m.mark.text, sizeof(m.mark.text));
    m.mark.text_n = (st_u16)(strlen(m.mark.text) + 1);
    wait->told = true;
    return rec_store_add(store, &m.head.header, wait->time, err);
}

static int by_length(const void *a, const void *b)
{
    const struct wait *x = *(struct wait *const *)a, *y = *(struct wait *const *)b;

    return x->took > y->took ? -1 : x->took < y->took;
}

typedef ST_VEC(struct wait *) wait_list;

/* Those of other threads that are not told yet, the longest first. 0 or -1. */
static int list_others(struct rec_waits *w, pid_t tid, wait_list *others)
{
    for (size_t i = 0; i < KEPT && i < w->n; i++)
        if (!w->at[i].told && (pid_t)w->at[i].tid != tid && st_vec_push(others, &w->at[i]))
            return -1;
    if (others->n)
        qsort(others->at, others->n, sizeof(others->at[0]), by_length);
    return 0;
}

int rec_waits_tell(struct rec_waits *w, uint64_t id, pid_t tid, struct rec_store *store, struct st_error *err)
{
    wait_list others = {0};
    int rc = list_others(w, tid, &others) ? st_nomem(err, "the waits of threads") : 0;

    for (size_t i = 0; i < KEPT && i < w->n && !rc; i++)
        if (!w->at[i].told && (pid_t)w->at[i].tid == tid)
            rc = tell(&w->at[i], id, store, err);
    for (size_t i = 0; i < others.n && i < OTHERS && !rc; i++)
        rc = tell(others.at[i], id, store, err);
    st_vec_free(&others);
    return rc;
}

void rec_waits_close(struct rec_waits *w)
{
    free(w);
}
