/* What the rings of a source may take together. */
#include "recorder/sources/ring_total.h"
#include "base/log.h"
#include "base/units.h"
#include "recorder/perf/task_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static const uint64_t LEAST = 1 << 20; /* bytes, where the machine's memory is not known */

static const uint64_t IDLE_NS = 1000000000; /* who ran within that is not idle */

static const useconds_t A_TENTH = 100000; /* us */

void rec_ring_total_open(struct rec_ring_total *t, uint64_t asked)
{
    struct sysinfo info;

    *t = (struct rec_ring_total){.most = asked, .asked = asked != 0};
    if (!asked && !sysinfo(&info))
        t->most = (uint64_t)info.totalram * info.mem_unit / REC_RING_SHARE;
    if (!t->most)
        t->most = LEAST;
}

size_t rec_ring_fit(size_t bytes, size_t least, size_t n, uint64_t total)
{
    while (bytes / 2 >= least && n && bytes > total / n)
        bytes /= 2;
    return bytes;
}

bool rec_ring_has_room(const struct rec_ring_total *t, size_t bytes)
{
    uint64_t all = bytes;

    for (size_t i = 0; i < t->uses.n; i++)
        all += t->uses.at[i].bytes;
    return all <= t->most || !t->uses.n;
}

int rec_ring_made(struct rec_ring_total *t, pid_t pid, pid_t tid, size_t bytes, uint64_t now)
{
    return st_vec_push(&t->uses,
                       (struct rec_ring_use){.pid = pid, .tid = tid, .bytes = bytes, .active = now});
}

void rec_ring_dropped(struct rec_ring_total *t, size_t i)
{
    memmove(&t->uses.at[i], &t->uses.at[i + 1], (--t->uses.n - i) * sizeof(*t->uses.at));
}

void rec_ring_look(struct rec_ring_total *t, size_t i, uint64_t place, uint64_t now)
{
    struct rec_ring_use *use = &t->uses.at[i];

    if (place == use->place)
        return;
    use->place = place;
    use->active = now;
}

size_t rec_ring_idlest(const struct rec_ring_total *t, uint64_t now)
{
    size_t idlest = t->uses.n;

    for (size_t i = 0; i < t->uses.n; i++)
        if (t->uses.at[i].active + IDLE_NS <= now &&
            (idlest == t->uses.n || t->uses.at[i].active < t->uses.at[idlest].active))
            idlest = i;
    return idlest;
}

bool rec_ring_is_gone(const struct rec_ring_total *t, pid_t pid, pid_t tid)
{
    for (size_t i = 0; i < t->gone.n; i++)
        if (t->gone.at[i].tid == tid && t->gone.at[i].pid == pid)
            return true;
    return false;
}

/* ------------------------------------------------------------------ */
/* What is said of it                                                  */

int rec_ring_tell_gone(struct rec_ring_total *t, const struct rec_ring_gone *gone, struct st_error *err)
{
    char most[24], text[160];

    snprintf(text, sizeof(text), "thread %d has no ring%s: all rings together may take %s", gone->tid,
             gone->since ? " any more, as it was idle for longest" : "",
             st_format_size(t->most, most, sizeof(most)));
    if (t->told)
        st_log_debug("%s", text);
    else
        st_log_warn(
            "%s (told once; --ring-total allows more, a smaller --ring makes room, --rings cpu records "
            "every thread)",
            text);
    t->told = true;
    t->ngone++;
    if (t->gone.n == REC_MOST_GONE)
        memmove(t->gone.at, t->gone.at + 1, --t->gone.n * sizeof(*t->gone.at));
    return st_vec_push(&t->gone, *gone) ? st_nomem(err, "the threads without a ring") : 0;
}

void rec_ring_total_describe(const struct rec_ring_total *t, char *text, size_t size)
{
    char most[24], none[64] = "";

    if (t->ngone)
        snprintf(none, sizeof(none), ", %llu thread%s none", (unsigned long long)t->ngone,
                 t->ngone == 1 ? " has" : "s have");
    snprintf(text, size, " (%s in all at most%s)", st_format_size(t->most, most, sizeof(most)), none);
}

void rec_ring_total_end(const struct rec_ring_total *t)
{
    char most[24];

    if (t->ngone)
        st_log_info("%llu thread%s no ring, as all together may take %s (--ring-total): gaps in what was "
                    "recorded since",
                    (unsigned long long)t->ngone, t->ngone == 1 ? " had" : "s had",
                    st_format_size(t->most, most, sizeof(most)));
}

void rec_ring_total_clear(struct rec_ring_total *t)
{
    t->uses.n = t->gone.n = 0;
    t->ngone = 0;
}

void rec_ring_total_close(struct rec_ring_total *t)
{
    st_vec_free(&t->uses);
    st_vec_free(&t->gone);
}

/* ------------------------------------------------------------------ */
/* Who is to have one                                                  */

static int list_threads(const struct st_target *target, rec_ring_wishes *list, struct st_error *err)
{
    for (size_t i = 0; i < target->npids; i++) {
        struct st_error ended = {0};
        pid_t *tids = NULL;
        int n = st_target_threads(target->pids[i], &tids, &ended), rc = n == ST_ENOMEM ? -1 : 0;

        for (int k = 0; !rc && k < n; k++)
            rc = st_vec_push(list, (struct rec_ring_wish){.pid = target->pids[i], .tid = tids[k]});
        free(tids);
        if (rc)
            return st_nomem(err, "the list of threads");
    }
    return 0;
}

/* One that cannot be read stays as it was. */
static void look_at(struct rec_ring_wish *wish)
{
    struct rec_task_runs runs;

    if (!rec_task_runs(wish->pid, wish->tid, &runs))
        return;
    wish->ran = runs.ns != wish->ns;
    wish->ns = runs.ns;
    wish->times = runs.times;
}

static int by_activity(const void *a, const void *b)
{
    const struct rec_ring_wish *x = a, *y = b;

    if (x->ran != y->ran)
        return x->ran ? -1 : 1;
    if (x->times != y->times)
        return x->times > y->times ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

void rec_ring_wish_sort(rec_ring_wishes *list)
{
    if (list->n)
        qsort(list->at, list->n, sizeof(list->at[0]), by_activity);
}

int rec_ring_wish(const struct st_target *target, rec_ring_wishes *list, struct st_error *err)
{
    int rc = list_threads(target, list, err);

    for (int round = 0; !rc && round < 2; round++) {
        if (round)
            usleep(A_TENTH);
        for (size_t i = 0; i < list->n; i++)
            look_at(&list->at[i]);
    }
    rec_ring_wish_sort(list);
    return rc;
}
