/* The table `meta`: where the trace came from, its clocks, what was counted. Keys are documented in
 * docs/schema.md. */
#include "decoder/model/db/db_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Takes n bytes from the front of *at. NULL: there are not so many. */
static const void *take(const char **at, const char *end, size_t n)
{
    const char *here = *at;

    if ((size_t)(end - here) < n)
        return NULL;
    *at += n;
    return here;
}

/* PD_FEAT_CMDLINE: a count, then for each argument its length (padded) and its bytes (perf's struct
 * perf_header_string_list). */
static const char *next_argument(const char **at, const char *end)
{
    const void *head = take(at, end, 4);
    const char *text;
    uint32_t length;

    if (!head)
        return NULL;
    memcpy(&length, head, 4);
    text = take(at, end, length);
    return text && length && memchr(text, '\0', length) ? text : NULL;
}

static int add_trigger(char ***triggers, size_t *n, const char *text)
{
    char **more = reallocarray(*triggers, *n + 1, sizeof(char *));

    if (!more)
        return -1;
    *triggers = more;
    more[*n] = strdup(text);
    return more[*n] ? (*n)++, 0 : -1;
}

int model_triggers(const struct pd_reader *reader, char ***triggers, size_t *n, struct st_error *err)
{
    size_t size = 0;
    const char *at = reader ? pd_reader_feature(reader, PD_FEAT_CMDLINE, &size) : NULL;
    const char *end = at ? at + size : NULL;
    const char *argument;
    bool follows = false;

    *triggers = NULL;
    *n = 0;
    if (!at || !take(&at, end, 4))
        return 0;
    while ((argument = next_argument(&at, end))) {
        const char *text = follows ? argument : !strncmp(argument, "--on=", 5) ? argument + 5 : NULL;

        follows = !follows && !strcmp(argument, "--on");
        if (text && add_trigger(triggers, n, text))
            return st_nomem(err, "the triggers");
        if (!strcmp(argument, "--"))
            break;
    }
    return 0;
}

static char *command_line(const struct pd_reader *reader)
{
    size_t size = 0, length;
    const char *at = pd_reader_feature(reader, PD_FEAT_CMDLINE, &size);
    const char *end = at ? at + size : NULL;
    const char *argument;
    char *text = NULL;
    FILE *out;

    if (!at || !take(&at, end, 4))
        return NULL;
    out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    for (int i = 0; (argument = next_argument(&at, end)); i++)
        fprintf(out, "%s%s", i ? " " : "", argument);
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

static int put_text(struct tdb_writer *w, const char *key, const char *value, struct st_error *err)
{
    return value && *value ? tdb_set_meta_text(w, key, value, err) : 0;
}

static const struct perf_event_attr *pt_attr(const struct pd_reader *reader)
{
    for (size_t i = 0; i < pd_reader_nevents(reader); i++) {
        const struct pd_event *event = pd_reader_event(reader, i);

        if (!strncmp(event->name, "intel_pt", 8))
            return &event->attr;
    }
    return NULL;
}

/* The stepping source stamps its packets with the perf clock itself. */
static const char *source(const struct dec_model *m)
{
    const struct dec_clock *c = &m->sb->pt.clock;

    if (dec_sideband_meta(m->sb, "source"))
        return dec_sideband_meta(m->sb, "source");
    if (!m->sb->has_pt)
        return m->sb->sampled ? "sample" : NULL;
    return c->known && c->mult == 1 && !c->shift && !c->zero ? "step" : "intel-pt";
}

static int write_origin(struct dec_model *m, struct tdb_writer *w, const struct pd_reader *r,
                        struct st_error *err)
{
    const struct perf_event_attr *attr = m->sb->sampled && !m->sb->has_pt ? m->sb->sampled : pt_attr(r);
    char *command = command_line(r);
    int rc = put_text(w, "source", source(m), err);

    if (!rc && attr)
        rc = put_text(w, "traced",
                      attr->exclude_kernel ? "user"
                      : attr->exclude_user ? "kernel"
                                           : "user+kernel",
                      err);
    if (!rc)
        rc = put_text(w, "hostname", pd_reader_string(r, PD_FEAT_HOSTNAME), err);
    if (!rc)
        rc = put_text(w, "kernel", pd_reader_string(r, PD_FEAT_OSRELEASE), err);
    if (!rc)
        rc = put_text(w, "arch", pd_reader_string(r, PD_FEAT_ARCH), err);
    if (!rc)
        rc = put_text(w, "cpu", pd_reader_string(r, PD_FEAT_CPUDESC), err);
    if (!rc)
        rc = put_text(w, "recorder_version", pd_reader_string(r, PD_FEAT_VERSION), err);
    if (!rc)
        rc = put_text(w, "command_line", command, err);
    free(command);
    return rc;
}

/* PD_FEAT_CLOCK_DATA: version, clock id, then one moment on the wall clock and on the recording's. */
static int write_wall_clock(struct dec_model *m, struct tdb_writer *w, const struct pd_reader *r,
                            struct st_error *err)
{
    struct {
        uint32_t version, clock_id;

        uint64_t wall, recorded;
    } clock;
    size_t size = 0;
    const void *data = r ? pd_reader_feature(r, PD_FEAT_CLOCK_DATA, &size) : NULL;

    if (dec_sideband_meta(m->sb, "wall_offset_ns"))
        return tdb_set_meta_number(w, "wall_offset_ns", dec_sideband_meta_number(m->sb, "wall_offset_ns", 0),
                                   err);
    if (!data || size < sizeof(clock))
        return 0;
    memcpy(&clock, data, sizeof(clock));
    return tdb_set_meta_number(w, "wall_offset_ns", (int64_t)(clock.wall - clock.recorded), err);
}

/* Which clock the events had: perf's own, or what was asked for (`perf record -k`). */
static const char *clock_name(const struct pd_reader *r)
{
    static const char *const names[] = {[CLOCK_REALTIME] = "realtime",
                                        [CLOCK_MONOTONIC] = "monotonic",
                                        [CLOCK_MONOTONIC_RAW] = "monotonic_raw",
                                        [CLOCK_BOOTTIME] = "boottime",
                                        [CLOCK_TAI] = "tai"};
    const struct pd_event *e = r ? pd_reader_event(r, 0) : NULL;
    int id = e && e->attr.use_clockid ? e->attr.clockid : -1;

    return id >= 0 && (size_t)id < sizeof(names) / sizeof(names[0]) && names[id] ? names[id] : "perf";
}

static int write_clocks(struct dec_model *m, struct tdb_writer *w, const struct dec_provenance *from,
                        struct st_error *err)
{
    const struct dec_flow_counts *f = from->flow;
    struct dec_model_totals t = dec_model_totals(m);
    bool timed = m->sb->last || m->sb->pt.clock.known;
    int rc = put_text(w, "clock", timed ? clock_name(from->reader) : t.last ? "tsc" : "none", err);

    if (!rc)
        rc = tdb_set_meta_number(w, "origin_perf_ns", (int64_t)m->origin, err);
    if (!rc)
        rc = write_wall_clock(m, w, from->reader, err);
    if (!rc && m->sb->last)
        rc = tdb_set_meta_number(w, "recording_start_ns", model_time(m, m->sb->first), err);
    if (!rc && m->sb->last)
        rc = tdb_set_meta_number(w, "recording_end_ns", model_time(m, m->sb->last), err);
    if (!rc && t.last) {
        rc = tdb_set_meta_number(w, "history_start_ns", model_time(m, t.first), err);
        if (!rc)
            rc = tdb_set_meta_number(w, "history_end_ns", model_time(m, t.last), err);
    }
    if (!rc && f->time_points > 1)
        rc = tdb_set_meta_number(w, "time_points", (int64_t)f->time_points, err);
    if (!rc && f->time_points > 1)
        rc = tdb_set_meta_number(w, "resolution_ns",
                                 (int64_t)((f->last_time - f->first_time) / (f->time_points - 1)), err);
    return rc;
}

static int write_samples(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    int64_t switches = 0, period = (int64_t)model_sample_period(m);
    int rc = 0;

    for (size_t i = 0; i < m->sb->samples.n; i++)
        switches += m->sb->samples.at[i].at_switch;
    if (!m->sb->sampled || m->sb->has_pt)
        return 0;
    if (period)
        rc = tdb_set_meta_number(w, "sample_period_ns", period, err);
    if (!rc)
        rc = tdb_set_meta_number(w, "samples", (int64_t)m->sb->samples.n, err);
    return rc ? rc : tdb_set_meta_number(w, "switch_samples", switches, err);
}

static struct dec_stack_counts sum_counts(const struct dec_model *m)
{
    struct dec_stack_counts sum = {0};

    for (size_t i = 0; i < m->nthreads; i++) {
        const struct dec_stack_counts *c = m->threads[i] ? dec_stack_counts(m->threads[i]->stack) : NULL;

        if (!c)
            continue;
        sum.calls += m->threads[i]->sampled ? m->threads[i]->calls.n : c->calls;
        sum.reconstructed += c->reconstructed;
        sum.unwound += c->unwound;
        sum.strays += c->strays;
        sum.switches += c->switches;
    }
    return sum;
}

static int write_counts(struct dec_model *m, struct tdb_writer *w, const struct dec_flow_counts *f,
                        struct st_error *err)
{
    struct dec_stack_counts c = sum_counts(m);
    const struct {
        const char *key;

        uint64_t value;
    } counts[] = {
        {"calls", c.calls},           {"calls_not_seen", c.reconstructed}, {"returns_not_seen", c.unwound},
        {"strays", c.strays},         {"stack_switches", c.switches},      {"instructions", f->instructions},
        {"taken_branches", f->taken}, {"decode_errors", f->errors},        {"overflows", f->overflows},
        {"trace_bytes", f->bytes},    {"skipped_records", m->sb->skipped}};
    int rc = 0;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !rc; i++)
        rc = tdb_set_meta_number(w, counts[i].key, (int64_t)counts[i].value, err);
    return rc;
}

/* The one that fired, where the recorder tells it; else all that were armed. */
static int write_triggers(struct dec_model *m, struct tdb_writer *w, const char *const *triggers, size_t n,
                          struct st_error *err)
{
    const char *fired = dec_sideband_meta(m->sb, "trigger");
    char *joined = NULL;
    size_t size;
    FILE *out;
    int rc;

    if (fired)
        return put_text(w, "trigger", fired, err);
    if (!n)
        return 0;
    out = open_memstream(&joined, &size);
    if (!out)
        return st_nomem(err, "the triggers");
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%s", i ? "\n" : "", triggers[i]);
    rc = fclose(out) ? st_nomem(err, "the triggers") : tdb_set_meta_text(w, "trigger", joined, err);
    free(joined);
    return rc;
}

/* How the snapshot came about, as the recorder tells it. */
static int write_snapshot(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    static const char *const texts[][2] = {{"reason", "snapshot_reason"},
                                           {"text", "snapshot_text"},
                                           {"source_text", "source_text"},
                                           {"target", "target"}};
    static const char *const times[][2] = {{"armed", "armed_ns"},
                                           {"freeze_asked", "freeze_asked_ns"},
                                           {"freeze_done", "freeze_done_ns"},
                                           {"resumed", "resumed_ns"}};
    static const char *const numbers[][2] = {{"in_kernel", "frozen_in_kernel"},
                                             {"traps", "traps"},
                                             {"traps_dropped", "traps_dropped"},
                                             {"stalls_without_trap", "stalls_without_trap"},
                                             {"lost_events", "lost_events"}};
    int rc = 0;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !rc; i++)
        rc = put_text(w, texts[i][1], dec_sideband_meta(m->sb, texts[i][0]), err);
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]) && !rc; i++) {
        int64_t time = dec_sideband_meta_number(m->sb, times[i][0], 0);

        if (time > 0)
            rc = tdb_set_meta_number(w, times[i][1], model_time(m, (uint64_t)time), err);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && !rc; i++)
        if (dec_sideband_meta(m->sb, numbers[i][0]))
            rc =
                tdb_set_meta_number(w, numbers[i][1], dec_sideband_meta_number(m->sb, numbers[i][0], 0), err);
    return rc;
}

/* Programs, as the recorder saw them: command.PID, exe.PID and build_id.PID keep their names. */
static int write_programs(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < m->sb->meta.n && !rc; i++) {
        const struct dec_meta *meta = &m->sb->meta.at[i];
        int pid, n = (int)(meta->value - meta->text) - 1;
        char key[32];

        if (n >= (int)sizeof(key) ||
            (sscanf(meta->text, "command.%d=", &pid) != 1 && sscanf(meta->text, "exe.%d=", &pid) != 1 &&
             sscanf(meta->text, "build_id.%d=", &pid) != 1))
            continue;
        snprintf(key, sizeof(key), "%.*s", n, meta->text);
        if (dec_sideband_meta(m->sb, key) == meta->value) /* the first of its name */
            rc = put_text(w, key, meta->value, err);
    }
    return rc;
}

/* The recorder's warnings, a line each. */
static int write_warnings(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    char *joined = NULL;
    size_t size, n = 0;
    FILE *out = open_memstream(&joined, &size);
    int rc;

    if (!out)
        return st_nomem(err, "the warnings");
    for (size_t i = 0; i < m->sb->meta.n; i++)
        if (!strncmp(m->sb->meta.at[i].text, "warning=", 8))
            fprintf(out, "%s%s", n++ ? "\n" : "", m->sb->meta.at[i].value);
    rc = fclose(out) ? st_nomem(err, "the warnings") : put_text(w, "warning", joined, err);
    free(joined);
    return rc;
}

/* Where calls of functions that were inlined are missing, though they were asked for. */
static int write_inlines(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    char *joined = NULL;
    size_t size;
    FILE *out;
    int rc = m->inlines ? tdb_set_meta_number(w, "inlined", 1, err) : 0;

    if (rc || !m->inlines)
        return rc;
    out = open_memstream(&joined, &size);
    if (!out)
        return st_nomem(err, "the names of modules");
    for (size_t i = 0; i < dec_inlines_without(m->inlines); i++)
        fprintf(out, "%s%s", i ? "\n" : "", dec_inlines_without_at(m->inlines, i)->name);
    rc = fclose(out) ? st_nomem(err, "the names of modules") : put_text(w, "no_dwarf", joined, err);
    free(joined);
    return rc;
}

int model_write_meta(struct dec_model *m, struct tdb_writer *w, const struct dec_provenance *from,
                     const char *const *triggers, size_t ntriggers, struct st_error *err)
{
    int rc = tdb_set_meta_text(w, "stalltrap_version", ST_VERSION, err);

    if (!rc)
        rc = tdb_set_meta_text(w, "snapshot", from->snapshot, err);
    if (!rc)
        rc = tdb_set_meta_number(w, "decoded_at", (int64_t)time(NULL), err);
    if (!rc)
        rc = tdb_set_meta_number(w, "decode_us", (int64_t)(from->seconds * 1e6), err);
    if (!rc && from->reader)
        rc = write_origin(m, w, from->reader, err);
    if (!rc)
        rc = write_triggers(m, w, triggers, ntriggers, err);
    if (!rc)
        rc = write_snapshot(m, w, err);
    if (!rc)
        rc = write_programs(m, w, err);
    if (!rc)
        rc = write_warnings(m, w, err);
    if (!rc)
        rc = write_clocks(m, w, from, err);
    if (!rc)
        rc = write_samples(m, w, err);
    if (!rc)
        rc = write_inlines(m, w, err);
    return rc ? rc : write_counts(m, w, from->flow, err);
}
