/* What a set of triggers measured: as text, JSON and OpenMetrics. */
#include "base/safetext.h"
#include "base/units.h"
#include "triggers/histogram.h"
#include "triggers/waits.h"

#include <string.h>

enum {
    WORST_THREADS = 10,
    SAFE = 4 * 256 + 1,
};

struct printer {
    FILE *to;

    bool each_thread;

    size_t triggers, threads; /* threads of the present trigger */

    bool of_threads; /* OpenMetrics: which family is being printed */
};

/* ---- text ---- */

/* As a trigger takes it: "13.6ms". */
static void print_threshold(const char *name, uint64_t ns, FILE *to)
{
    char text[24];

    st_format_duration((int64_t)ns, text, sizeof(text));
    fprintf(to, "%s ", name);
    for (const char *p = text; *p; p++)
        if (*p != ' ')
            fputc(*p, to);
}

static void print_thresholds(const struct trg_measured *m, FILE *to)
{
    if (!trg_hist_count(m->hist))
        return;
    fputs("  ", to);
    print_threshold("threshold for p99", trg_hist_percentile(m->hist, 0.99), to);
    print_threshold("   p99.9", trg_hist_percentile(m->hist, 0.999), to);
    print_threshold("   worst", m->hist->worst, to);
    fputc('\n', to);
}

static void print_thread(struct printer *p, const struct trg_measured *m)
{
    char safe[SAFE], count[32], p50[24], p99[24], p999[24], worst[24];

    st_safe_text(safe, sizeof(safe), m->comm);
    if (p->each_thread) {
        char head[SAFE + 32];

        snprintf(head, sizeof(head), " thread %u \"%s\"", m->tid, safe);
        trg_hist_print(m->hist, head, p->to);
        print_thresholds(m, p->to);
        return;
    }
    if (++p->threads > WORST_THREADS)
        return;
    if (p->threads == 1)
        fprintf(p->to, "  %7s %-16s %10s %9s %9s %9s %9s\n", "tid", "thread", "count", "p50", "p99", "p99.9",
                "worst");
    fprintf(p->to, "  %7u %-16.16s %10s %9s %9s %9s %9s\n", m->tid, safe,
            st_format_count(trg_hist_count(m->hist), count, sizeof(count)),
            st_format_duration((int64_t)trg_hist_percentile(m->hist, 0.5), p50, sizeof(p50)),
            st_format_duration((int64_t)trg_hist_percentile(m->hist, 0.99), p99, sizeof(p99)),
            st_format_duration((int64_t)trg_hist_percentile(m->hist, 0.999), p999, sizeof(p999)),
            st_format_duration((int64_t)m->hist->worst, worst, sizeof(worst)));
}

static void print_rest(const struct printer *p)
{
    if (p->threads > WORST_THREADS)
        fprintf(p->to, "  (and %zu more threads)\n", p->threads - WORST_THREADS);
}

static int print_text(void *ctx, const struct trg_measured *m, struct st_error *err)
{
    struct printer *p = ctx;
    char safe[SAFE], head[SAFE + 64];

    (void)err;
    if (m->tid) {
        print_thread(p, m);
        return 0;
    }
    print_rest(p);
    p->threads = 0;
    st_safe_text(safe, sizeof(safe), m->trigger);
    snprintf(head, sizeof(head), "%s: %s", safe, m->measures);
    trg_hist_print(m->hist, head, p->to);
    print_thresholds(m, p->to);
    return 0;
}

int trg_print_histograms(struct trg_set *set, bool each_thread, FILE *to, struct st_error *err)
{
    struct printer p = {.to = to, .each_thread = each_thread};
    int rc = trg_each_measured(set, print_text, &p, err);

    print_rest(&p);
    return rc ? rc : trg_print_places(set, to, err);
}

static int print_silence(void *ctx, const struct trg_measured *m, struct st_error *err)
{
    struct printer *p = ctx;
    char safe[SAFE], worst[24], threshold[24];

    (void)err;
    if (m->tid || (m->hits && !m->unseen))
        return 0;
    st_safe_text(safe, sizeof(safe), m->trigger);
    fprintf(p->to, "%s did not fire: ", safe);
    if (m->unseen)
        fputs(m->unseen, p->to);
    else if (!trg_hist_count(m->hist))
        fputs("nothing that it counts was seen to end", p->to);
    else if (m->threshold_ns)
        fprintf(p->to, "the longest was %s, %.0f %% of %s",
                st_format_duration((int64_t)m->hist->worst, worst, sizeof(worst)),
                (double)m->hist->worst / (double)m->threshold_ns * 100,
                st_format_duration((int64_t)m->threshold_ns, threshold, sizeof(threshold)));
    else
        fprintf(p->to, "the longest was %s",
                st_format_duration((int64_t)m->hist->worst, worst, sizeof(worst)));
    fputs(m->leaves_out_idle ? "; waits for work were left out (idle=yes counts them)\n" : "\n", p->to);
    return 0;
}

int trg_print_silence(struct trg_set *set, FILE *to, struct st_error *err)
{
    struct printer p = {.to = to};

    int rc = trg_each_measured(set, print_silence, &p, err);

    return rc ? rc : trg_print_left_out(set, to, err);
}

/* ---- JSON ---- */

/* Between quotes, as JSON and OpenMetrics both take it. */
static void print_quoted(const char *text, FILE *to)
{
    char safe[SAFE];

    st_safe_text(safe, sizeof(safe), text);
    fputc('"', to);
    for (const char *p = safe; *p; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', to);
        fputc(*p, to);
    }
    fputc('"', to);
}

static void print_json_hist(const struct hist *h, FILE *to)
{
    uint64_t power[64];
    bool any = false;

    trg_hist_powers(h, power);
    fprintf(to,
            "\"count\": %llu, \"sum_ns\": %llu, \"p50_ns\": %llu, \"p99_ns\": %llu, \"p999_ns\": %llu, "
            "\"worst_ns\": %llu, \"buckets\": [",
            (unsigned long long)trg_hist_count(h), (unsigned long long)h->sum,
            (unsigned long long)trg_hist_percentile(h, 0.5), (unsigned long long)trg_hist_percentile(h, 0.99),
            (unsigned long long)trg_hist_percentile(h, 0.999), (unsigned long long)h->worst);
    for (unsigned i = 0; i < 63; i++) {
        if (!power[i])
            continue;
        fprintf(to, "%s{\"from_ns\": %llu, \"to_ns\": %llu, \"count\": %llu}", any ? ", " : "",
                i ? 1ull << i : 0, 2ull << i, (unsigned long long)power[i]);
        any = true;
    }
    fputc(']', to);
}

static int print_json(void *ctx, const struct trg_measured *m, struct st_error *err)
{
    struct printer *p = ctx;

    (void)err;
    if (m->tid) {
        fprintf(p->to, "%s{\"tid\": %u, \"thread\": ", p->threads++ ? ", " : "", m->tid);
        print_quoted(m->comm, p->to);
        fputs(", ", p->to);
        print_json_hist(m->hist, p->to);
        fputc('}', p->to);
        return 0;
    }
    fputs(p->triggers++ ? "]}, {" : "{", p->to);
    fputs("\"trigger\": ", p->to);
    print_quoted(m->trigger, p->to);
    fputs(", \"measures\": ", p->to);
    print_quoted(m->measures, p->to);
    fputs(", ", p->to);
    print_json_hist(m->hist, p->to);
    fputs(", \"threads\": [", p->to);
    p->threads = 0;
    return 0;
}

int trg_print_json(struct trg_set *set, FILE *to, struct st_error *err)
{
    struct printer p = {.to = to};
    int rc;

    fputs("{\"triggers\": [", to);
    rc = trg_each_measured(set, print_json, &p, err);
    fprintf(to, "%s], \"lost\": %llu}\n", p.triggers ? "]}" : "", (unsigned long long)trg_lost(set));
    return rc;
}

/* ---- OpenMetrics ---- */

static void print_labels(const struct trg_measured *m, FILE *to)
{
    fputs("{trigger=", to);
    print_quoted(m->trigger, to);
    if (!m->tid)
        return;
    fprintf(to, ",tid=\"%u\",thread=", m->tid);
    print_quoted(m->comm, to);
}

/* From 1 us to 69 s; what is less or more is in the first or the last. */
static void print_series(const char *name, const struct trg_measured *m, FILE *to)
{
    uint64_t power[64], below = 0;

    trg_hist_powers(m->hist, power);
    for (unsigned i = 0; i < 36; i++) {
        below += power[i];
        if (i < 9)
            continue;
        fprintf(to, "%s_bucket", name);
        print_labels(m, to);
        fprintf(to, ",le=\"%.9g\"} %llu\n", (double)(2ull << i) / 1e9, (unsigned long long)below);
    }
    fprintf(to, "%s_bucket", name);
    print_labels(m, to);
    fprintf(to, ",le=\"+Inf\"} %llu\n", (unsigned long long)trg_hist_count(m->hist));
    fprintf(to, "%s_sum", name);
    print_labels(m, to);
    fprintf(to, "} %.9f\n", (double)m->hist->sum / 1e9);
    fprintf(to, "%s_count", name);
    print_labels(m, to);
    fprintf(to, "} %llu\n", (unsigned long long)trg_hist_count(m->hist));
}

static int print_openmetrics(void *ctx, const struct trg_measured *m, struct st_error *err)
{
    struct printer *p = ctx;

    (void)err;
    if (p->of_threads == (m->tid != 0))
        print_series(p->of_threads ? "stalltrap_thread_seconds" : "stalltrap_measured_seconds", m, p->to);
    return 0;
}

int trg_print_openmetrics(struct trg_set *set, const struct trg_traps *traps, FILE *to, struct st_error *err)
{
    struct printer p = {.to = to};
    int rc;

    fputs("# TYPE stalltrap_measured_seconds histogram\n# UNIT stalltrap_measured_seconds seconds\n"
          "# HELP stalltrap_measured_seconds What each trigger measured.\n",
          to);
    rc = trg_each_measured(set, print_openmetrics, &p, err);
    fputs("# TYPE stalltrap_thread_seconds histogram\n# UNIT stalltrap_thread_seconds seconds\n"
          "# HELP stalltrap_thread_seconds The same for each thread.\n",
          to);
    p.of_threads = true;
    if (!rc)
        rc = trg_each_measured(set, print_openmetrics, &p, err);
    fprintf(to,
            "# TYPE stalltrap_lost_events counter\n# HELP stalltrap_lost_events What could not be measured "
            "or written.\n"
            "stalltrap_lost_events_total %llu\n",
            (unsigned long long)trg_lost(set));
    if (traps)
        fprintf(to,
                "# TYPE stalltrap_traps counter\n# HELP stalltrap_traps Traps that fired.\n"
                "stalltrap_traps_total %u\n"
                "# TYPE stalltrap_trap_snapshots counter\n# HELP stalltrap_trap_snapshots Snapshots of traps "
                "that "
                "were written.\n"
                "stalltrap_trap_snapshots_total %u\n"
                "# TYPE stalltrap_traps_dropped counter\n# HELP stalltrap_traps_dropped Traps whose snapshot "
                "could not be written.\n"
                "stalltrap_traps_dropped_total %u\n"
                "# TYPE stalltrap_stalls_without_trap counter\n# HELP stalltrap_stalls_without_trap Stalls "
                "past their threshold while nothing could fire.\n"
                "stalltrap_stalls_without_trap_total %u\n",
                traps->fired, traps->written, traps->dropped, traps->without);
    fputs("# EOF\n", to);
    return rc;
}
