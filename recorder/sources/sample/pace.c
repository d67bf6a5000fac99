/* Keeps what context switches and wake-ups cost within the budget: counts them while it records, and samples
 * one in so many of those that come too often. Counts of the kernel's events go on whether they are sampled
 * or not. */
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/target_threads.h"
#include "recorder/perf/event.h"
#include "recorder/sources/sample/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    MOST_GUESSED = 64,  /* threads whose switches are counted before they are recorded */
    MOST_COUNTED = 1024 /* events that are looked at in a second */
};

typedef ST_VEC(struct smp_pace *) paces;

/* ------------------------------------------------------------------ */
/* Before anything is recorded                                          */

/* Of a thread (proc_pid_status(5)), or of the machine (proc_stat(5), ctxt). */
static uint64_t switches_of(pid_t tid)
{
    char path[32] = "/proc/stat", line[256];
    uint64_t sum = 0, n;
    FILE *f;

    if (tid >= 0)
        snprintf(path, sizeof(path), "/proc/%d/status", tid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &n) == 1 ||
            sscanf(line, "nonvoluntary_ctxt_switches: %" SCNu64, &n) == 1 ||
            sscanf(line, "ctxt %" SCNu64, &n) == 1)
            sum += n;
    if (f)
        fclose(f);
    return sum;
}

static int guess_thread(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct rec_source *s = ctx;
    struct smp_guess guess = {.tid = tid};

    (void)pid;
    for (size_t i = 0; i < s->budget.guess.n; i++)
        if (s->budget.guess.at[i].tid == tid)
            return 0;
    if (s->budget.guess.n >= MOST_GUESSED)
        return 0;
    guess.switches = switches_of(tid);
    return st_vec_push(&s->budget.guess, guess) ? st_nomem(err, "the list of threads") : 1;
}

static int begin_guess(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    int rc;

    if (config->target->kind == ST_TARGET_COMMAND)
        return 0;
    rc = config->target->kind == ST_TARGET_ALL
             ? guess_thread(s, -1, -1, err)
             : rec_each_thread(config->target, config->command, guess_thread, s, NULL, err);
    return rc < 0 ? rc : rec_clock_now(&s->clock, &s->budget.looked, err);
}

int smp_pace_open(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    struct smp_budget *b = &s->budget;
    int rc;

    b->none = config->every_switch;
    b->may_slow = !s->select && !config->frequency && s->frequency > SMP_SLOW_RATE;
    b->switches = b->wakes = 1;
    b->rate = s->frequency;
    if (b->none)
        return 0;
    rc = s->select ? 0 : begin_guess(s, config, err);
    if (rc)
        return rc;
    b->cost = smp_cost_measure(&s->kinds[SMP_SAMPLES].attr, SMP_SLOW_RATE, &s->kinds[SMP_SWITCHES].attr);
    b->timer = rec_timer_open(err);
    return b->timer < 0 ? b->timer : 0;
}

/* ------------------------------------------------------------------ */
/* The periods                                                          */

static int set_period(int fd, uint64_t period)
{
    return fd < 0 ? 0 : ioctl(fd, PERF_EVENT_IOC_PERIOD, &period);
}

/* Of a software clock the kernel has made the frequency a period in ns already (kernel/events/core.c,
 * perf_swevent_init_hrtimer). */
static uint64_t rate_as_period(const struct rec_source *s, unsigned rate)
{
    return s->kinds[SMP_SAMPLES].attr.type == PERF_TYPE_SOFTWARE ? 1000000000 / rate : rate;
}

static void apply(const struct rec_source *s, size_t ring, bool pace, bool rate)
{
    const struct smp_ring *r = &s->rings.at[ring];

    for (size_t i = 0; i < s->events.n; i++) {
        const struct smp_event *e = &s->events.at[i];

        if (e->ring != ring)
            continue;
        if (pace && set_period(e->fd[SMP_SWITCHES], r->pace.every))
            st_log_debug("thread %d: its switches cannot be sampled less often", e->tid);
        if (rate && set_period(e->fd[SMP_SAMPLES], rate_as_period(s, r->slow ? SMP_SLOW_RATE : s->frequency)))
            st_log_debug("thread %d cannot be sampled less often", e->tid);
    }
}

static void note(struct rec_source *s)
{
    struct smp_budget *b = &s->budget;
    unsigned switches = 1, wakes = 1;
    bool slow = false;

    for (size_t i = 0; i < s->rings.n; i++) {
        switches = s->rings.at[i].pace.every > switches ? s->rings.at[i].pace.every : switches;
        slow = slow || s->rings.at[i].slow;
    }
    for (size_t i = 0; i < s->wakes.n; i++)
        wakes = s->wakes.at[i].pace.every > wakes ? s->wakes.at[i].pace.every : wakes;
    b->switches = switches > b->switches ? switches : b->switches;
    b->wakes = wakes > b->wakes ? wakes : b->wakes;
    b->rate = slow ? SMP_SLOW_RATE : b->rate;
    if (!b->since && (switches > 1 || wakes > 1 || slow))
        rec_clock_now(&s->clock, &b->since, NULL);
}

static int share_switches(struct rec_source *s, paces *list)
{
    uint64_t most = SMP_MARK_BUDGET / s->budget.cost.mark;

    list->n = 0;
    for (size_t i = 0; i < s->rings.n; i++)
        if (st_vec_push(list, &s->rings.at[i].pace))
            return -1;
    smp_budget_share(list->at, list->n, most, most * (s->wakes.n ? s->wakes.n : 1));
    return 0;
}

static int share_wakes(struct rec_source *s, paces *list)
{
    uint64_t most = SMP_MARK_BUDGET / s->budget.cost.mark;

    list->n = 0;
    for (size_t i = 0; i < s->wakes.n; i++)
        if (st_vec_push(list, &s->wakes.at[i].pace))
            return -1;
    smp_budget_share(list->at, list->n, most, most * list->n);
    return 0;
}

typedef ST_VEC(unsigned) periods;

static int periods_now(const struct rec_source *s, periods *p)
{
    int rc = st_vec_reserve(p, s->rings.n + s->wakes.n + 1);

    for (size_t i = 0; i < s->rings.n && !rc; i++)
        p->at[p->n++] = s->rings.at[i].pace.every;
    for (size_t i = 0; i < s->wakes.n && !rc; i++)
        p->at[p->n++] = s->wakes.at[i].pace.every;
    return rc;
}

static void apply_all(struct rec_source *s, const periods *before)
{
    for (size_t i = 0; i < s->rings.n; i++) {
        struct smp_ring *r = &s->rings.at[i];
        bool slow = s->budget.may_slow && smp_budget_is_slow(&s->budget.cost, r->pace.rate, r->slow);
        bool turned = slow != r->slow, paced = r->pace.every != before->at[i];

        r->slow = slow;
        if (turned || paced)
            apply(s, i, paced, turned);
    }
    for (size_t i = 0; i < s->wakes.n; i++)
        if (s->wakes.at[i].pace.every != before->at[s->rings.n + i] &&
            set_period(s->wakes.at[i].fd, s->wakes.at[i].pace.every))
            st_log_debug("wake-ups cannot be sampled less often");
}

/* By the rates as they are now. */
static void choose(struct rec_source *s)
{
    periods before = {0};
    paces list = {0};

    if (periods_now(s, &before) || share_switches(s, &list) || share_wakes(s, &list)) {
        st_log_debug("no memory to choose how many context switches are sampled");
    } else {
        apply_all(s, &before);
        note(s);
    }
    st_vec_free(&before);
    st_vec_free(&list);
}

/* ------------------------------------------------------------------ */
/* Looking                                                              */

/* The first word of what an event's read() gives is its count, whatever else it has been opened for. */
static uint64_t count_of(int fd)
{
    uint64_t value[2] = {0};

    return fd >= 0 && read(fd, value, sizeof(value)) >= (ssize_t)sizeof(value[0]) ? value[0] : 0;
}

static uint64_t a_second(uint64_t n, uint64_t ns)
{
    return ns ? (uint64_t)((double)n * 1e9 / (double)ns) : 0;
}

static void pace_by(struct smp_pace *p, uint64_t count, uint64_t ns)
{
    p->rate = count > p->counted ? a_second(count - p->counted, ns) : 0;
    p->counted = count;
}

/* The rates of what is not counted yet. */
static void take_guess(struct rec_source *s, uint64_t ns)
{
    struct smp_budget *b = &s->budget;
    uint64_t all = 0;

    for (size_t i = 0; i < b->guess.n; i++) {
        uint64_t now = switches_of(b->guess.at[i].tid), was = b->guess.at[i].switches;
        uint64_t n = now > was ? now - was : 0;

        all += n;
        for (size_t k = 0; k < s->rings.n && !s->per_cpu; k++)
            if (s->rings.at[k].tid == b->guess.at[i].tid)
                s->rings.at[k].pace.rate = a_second(n, ns);
    }
    for (size_t k = 0; k < s->rings.n && s->per_cpu; k++)
        s->rings.at[k].pace.rate = a_second(all / s->rings.n, ns);
    for (size_t k = 0; k < s->wakes.n; k++)
        s->wakes.at[k].pace.rate = a_second(all / s->wakes.n, ns);
}

/* Of what samples at switches and wake-ups may take of a CPU, each of the two has a half; of that again one
 * half is for whoever comes, the other is the threads' own. */
static void pace_select(struct rec_source *s)
{
    uint64_t quarter = SMP_MARK_BUDGET / s->budget.cost.mark / 4 + 1;
    uint64_t threads = trg_select_threads(s->select);
    struct select_pace pace = {.shared_ns = 1000000000 / quarter};

    pace.own_ns = pace.shared_ns * (threads / s->cpus.n + 1);
    trg_select_set_pace(s->select, pace);
}

/* Whether the rings take nothing now, for a snapshot. */
static bool is_paused(const struct rec_source *s)
{
    return s->rings.n && s->rings.at[0].stopped;
}

/* What the program left out. */
static void look_at_select(struct rec_source *s, uint64_t perf_now)
{
    const struct select_left left = trg_select_left(s->select);
    struct smp_budget *b = &s->budget;
    uint64_t lost = trg_select_lost(s->select) - b->paused;

    if (left.since_ktime && !b->since)
        b->since = perf_now - (st_kernel_ns() - left.since_ktime);
    if (lost && !b->told_lost && !is_paused(s)) {
        st_log_warn("%" PRIu64 " context switch%s or wake-up%s could not be recorded (told once)", lost,
                    lost == 1 ? "" : "es", lost == 1 ? "" : "s");
        b->told_lost = true;
    }
    b->switches = (unsigned)left.run[SELECT_SWITCHES] + 1;
    b->wakes = (unsigned)left.run[SELECT_WAKES] + 1;
}

void smp_pace_begin(struct rec_source *s)
{
    struct smp_budget *b = &s->budget;
    uint64_t now = 0;

    if (s->select && !b->none)
        pace_select(s);

    if (b->timer < 0 || rec_timer_set(b->timer, SMP_LOOK_NS, SMP_LOOK_NS, NULL) ||
        rec_clock_now(&s->clock, &now, NULL))
        return;
    if (b->guess.n && now > b->looked) {
        take_guess(s, now - b->looked);
        choose(s);
    }
    b->looked = now;
    b->told = b->since; /* by the armed line */
}

static void tell(struct rec_source *s)
{
    char text[128];

    if (s->budget.told || !s->budget.since)
        return;
    s->budget.told = true;
    smp_pace_describe(s, text, sizeof(text));
    st_log_info("to cost the target no more than it may, samples are now taken less often: %s "
                "(--every-switch takes all)",
                text + 2);
}

/* Those of each ring together; of CPUs' rings many write into one. */
static int count_switches(const struct rec_source *s, uint64_t ns, struct smp_ring *rings)
{
    ST_VEC(uint64_t) counts = {0};
    int rc = st_vec_reserve(&counts, s->rings.n + 1);

    for (size_t i = 0; i < s->rings.n && !rc; i++)
        counts.at[counts.n++] = 0;
    for (size_t i = 0; i < s->events.n && !rc; i++)
        counts.at[s->events.at[i].ring] += count_of(s->events.at[i].fd[SMP_SWITCHES]);
    for (size_t i = 0; i < s->rings.n && !rc; i++)
        pace_by(&rings[i].pace, counts.at[i], ns);
    st_vec_free(&counts);
    return rc;
}

/* Of many events it is looked less often. */
static bool is_too_early(const struct rec_source *s, uint64_t ns)
{
    return ns / SMP_LOOK_NS < (s->events.n + s->wakes.n) / MOST_COUNTED;
}

void smp_pace_look(struct rec_source *s)
{
    struct smp_budget *b = &s->budget;
    uint64_t now = 0, ns;

    rec_timer_clear(b->timer);
    if (rec_clock_now(&s->clock, &now, NULL) || now <= b->looked)
        return;
    ns = now - b->looked;
    if (is_too_early(s, ns))
        return;
    b->looked = now;
    if (s->select) {
        pace_select(s);
        look_at_select(s, now);
        tell(s);
        return;
    }
    if (count_switches(s, ns, s->rings.at))
        return;
    for (size_t i = 0; i < s->wakes.n; i++)
        pace_by(&s->wakes.at[i].pace, count_of(s->wakes.at[i].fd), ns);
    choose(s);
    tell(s);
}

/* ------------------------------------------------------------------ */
/* What is said of it                                                   */

void smp_pace_describe(const struct rec_source *s, char *text, size_t size)
{
    const struct smp_budget *b = &s->budget;
    char switches[48] = "", wakes[48] = "", rate[64] = "";

    text[0] = '\0';
    if (!b->since)
        return;
    if (b->switches > 1)
        snprintf(switches, sizeof(switches), ", one context switch in %u", b->switches);
    if (b->wakes > 1)
        snprintf(wakes, sizeof(wakes), ", one wake-up in %u", b->wakes);
    if (b->rate < s->frequency)
        snprintf(rate, sizeof(rate), ", %u samples a second of threads that switch often", b->rate);
    snprintf(text, size, "%s%s%s", rate, switches, wakes);
}

void smp_pace_meta(struct rec_source *s, char *text, size_t size)
{
    const struct smp_budget *b = &s->budget;
    uint64_t now = 0;

    text[0] = '\0';
    if (s->select && !b->none && !rec_clock_now(&s->clock, &now, NULL))
        look_at_select(s, now);
    if (b->since)
        snprintf(text, size, "since=%" PRIu64 " switches=%u wakes=%u rate=%u of=%u", b->since, b->switches,
                 b->wakes, b->rate, s->frequency);
}

void smp_pace_close(struct rec_source *s)
{
    if (s->budget.timer >= 0)
        close(s->budget.timer);
    st_vec_free(&s->budget.guess);
}
