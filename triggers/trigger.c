/* The set of triggers of one recording: every kind behind one face. */
#include "triggers/trigger.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/safetext.h"
#include "base/vec.h"
#include "triggers/attrs.h"
#include "triggers/golang.h"
#include "triggers/histogram.h"
#include "triggers/language/kind.h"
#include "triggers/language/parse.h"
#include "triggers/needs.h"
#include "triggers/privilege.h"
#include "triggers/python_stall.h"
#include "triggers/waits.h"
#include "triggers/write.h"

#include <stdlib.h>
#include <string.h>

#define SAID 512

struct trg_one {
    struct trg_spec spec;

    struct trg_state *state; /* NULL until it is open */

    bool told_unseen;
};

struct trg_set {
    ST_VEC(struct trg_one) each;

    const struct trg_config *config;

    struct trg_config copy;

    struct trg_frames frames;
};

/* The set takes what the spec owns, also when it fails. */
static int add_spec(struct trg_set **set, struct trg_spec *spec, struct st_error *err)
{
    struct trg_one one = {.spec = *spec};
    int rc = 0;

    if (!*set && !(*set = calloc(1, sizeof(**set))))
        rc = st_nomem(err, "the triggers");
    if (!rc && st_vec_push(&(*set)->each, one))
        rc = st_nomem(err, "the triggers");
    if (rc)
        trg_spec_free(spec);
    return rc;
}

int trg_add(struct trg_set **set, const char *text, struct st_error *err)
{
    struct trg_spec spec;
    int rc = trg_parse(text, &spec, err);

    return rc ? rc : add_spec(set, &spec, err);
}

/* write:FD, which is no trigger. */
static int add_written(struct trg_set **set, const char *fd, struct st_error *err)
{
    struct trg_spec spec = {
        .kind = &trg_write, .text = strdup(fd), .options = calloc(1, sizeof(*spec.options))};
    int rc = spec.text && spec.options ? 0 : st_nomem(err, "a mark");

    if (!rc && !trg_set_descriptor(spec.options, fd))
        rc =
            st_fail(err, ST_EUSAGE, "write: needs %s, as in %s", trg_write.takes->expects, trg_write.example);
    if (!rc)
        return add_spec(set, &spec, err);
    trg_spec_free(&spec);
    return rc;
}

/* As the user wrote it: that is the mark's name. */
static int keep_text(struct trg_spec *spec, const char *text, struct st_error *err)
{
    char *copy = strdup(text);

    if (!copy)
        return st_nomem(err, "a mark");
    free(spec->text);
    spec->text = copy;
    return 0;
}

static const char *const mark_kinds[] = {"tracepoint", "usdt", "func", "call", "write"};

void trg_complete_mark(struct st_completion *c)
{
    char word[32];

    for (size_t i = 0; i < sizeof(mark_kinds) / sizeof(mark_kinds[0]); i++) {
        snprintf(word, sizeof(word), "%s:", mark_kinds[i]);
        st_complete_word(c, word, NULL);
    }
}

static int add_mark(struct trg_set **set, const char *text, struct st_error *err)
{
    const size_t nwords = sizeof(mark_kinds) / sizeof(mark_kinds[0]);
    size_t n = strcspn(text, ":"), known = 0;
    char *as_call;
    int rc;

    while (known < nwords && (strlen(mark_kinds[known]) != n || strncmp(mark_kinds[known], text, n)))
        known++;
    if (known == nwords)
        return st_fail(err, ST_EUSAGE,
                       "a mark is tracepoint:CATEGORY:NAME, usdt:PATH:PROVIDER:NAME, func:NAME or write:FD");
    if (!strcmp(mark_kinds[known], "write"))
        return add_written(set, text[n] ? text + n + 1 : "", err);
    if (strcmp(mark_kinds[known], "func"))
        return trg_add(set, text, err);
    if (asprintf(&as_call, "call%s", text + n) < 0)
        return st_nomem(err, "a mark");
    rc = trg_add(set, as_call, err);
    free(as_call);
    return rc;
}

int trg_add_mark(struct trg_set **set, const char *text, struct st_error *err)
{
    char safe[256];
    int rc = add_mark(set, text, err);

    st_safe_text(safe, sizeof(safe), text);
    if (!rc)
        rc = keep_text(&(*set)->each.at[(*set)->each.n - 1].spec, text, err);
    return rc ? st_prefix(err, "--mark '%s': ", safe) : 0;
}

size_t trg_count(const struct trg_set *set)
{
    return set ? set->each.n : 0;
}

const char *trg_text(const struct trg_set *set, size_t i)
{
    return set->each.at[i].spec.text;
}

bool trg_measures(const struct trg_set *set)
{
    for (size_t i = 0; set && i < set->each.n; i++)
        if (!set->each.at[i].spec.kind->hits)
            return true;
    return false;
}

static void close_states(struct trg_set *set)
{
    for (size_t i = 0; i < set->each.n; i++) {
        struct trg_one *one = &set->each.at[i];

        if (one->state)
            one->spec.kind->close(one->state);
        one->state = NULL;
    }
}

/* Waits for work do not count, and idle=yes would have them counted. */
static bool leaves_out_idle(const struct trg_spec *spec)
{
    return !spec->options->count_idle && spec->kind != &trg_busy && trg_can_learn(spec->kind);
}

/* In a program of Go a thread that waits by futex has no work; those triggers that leave out waits for work
 * leave it out. */
static void learn_golang(struct trg_set *set)
{
    bool leaves_out = false;

    if (!set->config->target || !trg_is_golang(set->config->target))
        return;
    for (size_t i = 0; i < set->each.n; i++) {
        trg_set_idle(set->each.at[i].spec.options, "futex");
        leaves_out |= leaves_out_idle(&set->each.at[i].spec) || set->each.at[i].spec.kind == &trg_busy;
    }
    if (leaves_out)
        st_log_info("a program of Go: its threads wait by futex for work, goroutines for locks and channels; "
                    "such waits do not count "
                    "(idle=yes: they do)");
}

/* Whether one of them learns where the target waits for work. */
static bool learns(const struct trg_set *set)
{
    for (size_t i = 0; i < set->each.n; i++)
        if (set->each.at[i].spec.options->learn_idle)
            return true;
    return false;
}

/* What this process and this kernel lack for them. */
static int check_machine(const struct trg_set *set, bool measure_only, struct st_error *err)
{
    int rc = trg_check_bpf(measure_only, err);

    for (size_t i = 0; !rc && i < set->each.n; i++)
        if (!set->each.at[i].spec.kind->own_programs)
            return trg_check_needs(err);
    return rc;
}

int trg_open(struct trg_set *set, const struct trg_config *config, struct st_error *err)
{
    int rc = check_machine(set, config->measure_only, err);

    set->copy = *config;
    set->config = &set->copy;
    if (!rc)
        learn_golang(set);
    if (!rc && !set->copy.calls_alone && learns(set))
        set->copy.calls_alone = !trg_has_steady_stacks(set->copy.target);
    for (size_t i = 0; !rc && i < set->each.n; i++) {
        struct trg_one *one = &set->each.at[i];
        struct trg_open how = {.spec = &one->spec, .config = set->config, .trigger = (uint32_t)i};

        rc = one->spec.kind->open(&how, &one->state, err);
        if (!rc)
            one->spec.kind->hold(one->state, UINT64_MAX); /* until start */
    }
    if (rc)
        close_states(set);
    return rc;
}

void trg_output_attr(struct perf_event_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->size = sizeof(*attr);
    attr->type = PERF_TYPE_SOFTWARE;
    attr->config = PERF_COUNT_SW_BPF_OUTPUT;
    attr->sample_period = 1;
    attr->sample_type =
        PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
    attr->sample_id_all = 1;
    attr->wakeup_events = 1;
}

int trg_set_output(struct trg_set *set, int cpu, int fd, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < set->each.n; i++)
        rc = set->each.at[i].spec.kind->set_output(set->each.at[i].state, cpu, fd, err);
    return rc;
}

const char *trg_hook(const struct trg_set *set, size_t i)
{
    const struct trg_one *one = &set->each.at[i];

    return one->state && one->spec.kind->hook ? one->spec.kind->hook(one->state) : NULL;
}

int trg_start(struct trg_set *set, struct st_error *err)
{
    int rc = trg_hold(set, UINT64_MAX, err); /* until the last one is attached */

    for (size_t i = 0; !rc && i < set->each.n; i++)
        rc = set->each.at[i].spec.kind->start(set->each.at[i].state, err);
    return rc ? rc : trg_hold(set, set->config->warm_up_ns, err);
}

int trg_joined(struct trg_set *set, pid_t pid, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < set->each.n; i++) {
        const struct trg_one *one = &set->each.at[i];

        if (one->state && one->spec.kind->joined)
            rc = one->spec.kind->joined(one->state, pid, err);
    }
    return rc;
}

int trg_hold(struct trg_set *set, uint64_t ns, struct st_error *err)
{
    uint64_t now = st_kernel_ns();
    uint64_t until = ns > UINT64_MAX - now ? UINT64_MAX : ns ? now + ns : 0;

    (void)err;
    for (size_t i = 0; i < set->each.n; i++)
        if (set->each.at[i].state)
            set->each.at[i].spec.kind->hold(set->each.at[i].state, until);
    return 0;
}

static const struct trg_kind *kind_of(const struct st_stall_record *record)
{
    for (size_t i = 0; trg_kinds[i]; i++)
        if (trg_kinds[i]->record_kind == record->kind)
            return trg_kinds[i];
    return NULL;
}

static int check_counts(const struct st_stall_record *r, struct st_error *err)
{
    if (r->kstack_n > ST_STALL_KSTACK || r->ustack_n > ST_STALL_USTACK || r->wstack_n > ST_STALL_WSTACK ||
        r->extra_n > ST_STALL_EXTRA)
        return st_fail(
            err, ST_EBADFILE,
            "a stall record with %u, %u and %u frames and %u bytes of attributes: more than it has room for",
            r->kstack_n, r->ustack_n, r->wstack_n, r->extra_n);
    return 0;
}

int trg_record(const void *raw, size_t size, const struct st_stall_record **record, struct st_error *err)
{
    const struct st_stall_record *r = raw;
    uint32_t magic;
    uint16_t version;
    int rc;

    if (size < sizeof(magic) + sizeof(version))
        return 0;
    memcpy(&magic, raw, sizeof(magic));
    if (magic != ST_STALL_MAGIC)
        return 0;
    memcpy(&version, (const char *)raw + sizeof(magic), sizeof(version));
    if (version != ST_STALL_VERSION)
        return st_fail(err, ST_EBADFILE, "a stall record of version %u, this program knows %d", version,
                       ST_STALL_VERSION);
    if (size < sizeof(*r))
        return st_fail(err, ST_EBADFILE, "a stall record of %zu bytes, expected %zu", size, sizeof(*r));
    if ((uintptr_t)raw % _Alignof(struct st_stall_record))
        return st_fail(err, ST_EFAIL, "a stall record at an address that is no multiple of 8");
    rc = check_counts(r, err);
    if (rc)
        return rc;
    *record = r;
    return 1;
}

void trg_complete(struct trg_set *set, struct st_stall_record *record)
{
    struct trg_one *one = record->trigger < set->each.n ? &set->each.at[record->trigger] : NULL;

    if (one && one->state && one->spec.kind->record_kind == record->kind)
        one->spec.kind->complete(one->state, record);
    trg_python_take(record, &set->frames);
    trg_add_attrs(record);
}

const struct trg_frames *trg_frames(const struct trg_set *set)
{
    return &set->frames;
}

void trg_describe(const struct trg_set *set, const struct st_stall_record *record, trg_ksym_fn *name,
                  void *ctx, char *text, size_t size)
{
    const struct trg_kind *kind = kind_of(record);
    char comm[17], safe[68];
    int n;

    (void)set;
    snprintf(comm, sizeof(comm), "%.16s", record->comm);
    st_safe_text(safe, sizeof(safe), comm);
    n = snprintf(text, size, "thread %u \"%s\" ", record->tid, safe);
    if (kind && n > 0 && (size_t)n < size)
        kind->describe(record, name, ctx, text + n, size - (size_t)n);
}

/* The threads of one trigger. */
typedef ST_VEC(struct thread_hist) thread_list;

static int keep_thread(void *ctx, const struct thread_hist *thread, struct st_error *err)
{
    thread_list *list = ctx;

    return st_vec_push(list, *thread) ? st_nomem(err, "the histograms of threads") : 0;
}

static int by_id(const void *a, const void *b)
{
    const struct thread_hist *x = a, *y = b;

    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Threads that had the same id one after the other count as one. */
static void join_same_ids(thread_list *list)
{
    size_t n = 0;

    if (list->n)
        qsort(list->at, list->n, sizeof(*list->at), by_id);
    for (size_t i = 0; i < list->n; i++)
        if (n && list->at[n - 1].tid == list->at[i].tid)
            trg_hist_add(&list->at[n - 1].hist, &list->at[i].hist);
        else
            list->at[n++] = list->at[i];
    list->n = n;
}

static int by_worst(const void *a, const void *b)
{
    const struct thread_hist *x = a, *y = b;

    if (x->hist.worst != y->hist.worst)
        return x->hist.worst < y->hist.worst ? 1 : -1;
    return by_id(a, b);
}

static int each_thread(const struct trg_one *one, struct trg_measured *m, trg_measured_fn *fn, void *ctx,
                       struct st_error *err)
{
    thread_list list = {0};
    int rc = one->spec.kind->threads(one->state, keep_thread, &list, err);

    join_same_ids(&list);
    if (list.n)
        qsort(list.at, list.n, sizeof(*list.at), by_worst);
    for (size_t i = 0; !rc && i < list.n; i++) {
        m->tid = list.at[i].tid;
        snprintf(m->comm, sizeof(m->comm), "%.16s", list.at[i].comm);
        m->hist = &list.at[i].hist;
        rc = fn(ctx, m, err);
    }
    st_vec_free(&list);
    return rc;
}

/* `text` has room for SAID bytes. Returns it, or NULL. */
static const char *unseen(const struct trg_one *one, char *text)
{
    return one->state && one->spec.kind->unseen && one->spec.kind->unseen(one->state, text, SAID) ? text
                                                                                                  : NULL;
}

bool trg_tell_unseen(struct trg_set *set)
{
    char text[SAID], safe[SAID];
    bool left = false;

    for (size_t i = 0; i < set->each.n; i++) {
        struct trg_one *one = &set->each.at[i];

        if (!one->spec.kind->unseen_at_once || !unseen(one, text))
            continue;
        left = true;
        st_safe_text(safe, sizeof(safe), one->spec.text);
        if (!one->told_unseen)
            st_log_info("%s: %s", safe, text);
        one->told_unseen = true;
    }
    return left;
}

int trg_each_measured(struct trg_set *set, trg_measured_fn *fn, void *ctx, struct st_error *err)
{
    struct hist *h = calloc(1, sizeof(*h));
    int rc = h ? 0 : st_nomem(err, "the histogram");
    char said[SAID];

    for (size_t i = 0; !rc && i < set->each.n; i++) {
        const struct trg_one *one = &set->each.at[i];
        struct trg_measured m = {.trigger = one->spec.text,
                                 .measures = one->spec.kind->measures,
                                 .threshold_ns = one->spec.worst ? 0 : one->spec.threshold_ns,
                                 .hits = one->spec.kind->hits,
                                 .unseen = unseen(one, said),
                                 .leaves_out_idle = leaves_out_idle(&one->spec),
                                 .hist = h};

        rc = one->spec.kind->histogram(one->state, h, err);
        if (!rc)
            rc = fn(ctx, &m, err);
        if (!rc && set->config->by_thread && one->spec.kind->threads)
            rc = each_thread(one, &m, fn, ctx, err);
    }
    free(h);
    return rc;
}

int trg_each_waited(struct trg_set *set, trg_waited_fn *fn, void *ctx, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < set->each.n; i++) {
        const struct trg_one *one = &set->each.at[i];
        struct trg_waited like = {.trigger = one->spec.text,
                                  .threshold_ns = one->spec.worst ? 0 : one->spec.threshold_ns,
                                  .learned = one->spec.options->learn_idle && !one->spec.options->count_idle,
                                  .shown = one->spec.options->show_places && !one->spec.options->count_idle,
                                  .always_idle = one->spec.kind == &trg_busy};

        if (one->state)
            rc = trg_each_wait_of(one->spec.kind, one->state, &like, fn, ctx, err);
    }
    return rc;
}

uint64_t trg_lost(struct trg_set *set)
{
    uint64_t lost = 0;

    for (size_t i = 0; i < set->each.n; i++)
        if (set->each.at[i].state)
            lost += set->each.at[i].spec.kind->lost(set->each.at[i].state);
    return lost;
}

void trg_close(struct trg_set *set)
{
    if (!set)
        return;
    close_states(set);
    for (size_t i = 0; i < set->each.n; i++)
        trg_spec_free(&set->each.at[i].spec);
    st_vec_free(&set->each);
    free(set);
}
