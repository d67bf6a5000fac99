/* What `decode` does, step by step. */
#include "decoder/cmd/decode_job.h"

#include "base/log.h"
#include "base/progress.h"
#include "base/spool.h"
#include "base/units.h"
#include "decoder/cmd/decode_list.h"
#include "decoder/cmd/decode_rings.h"
#include "decoder/cmd/stats.h"
#include "decoder/cmd/worker.h"
#include "decoder/event/relay.h"
#include "decoder/model/db/db.h"
#include "decoder/model/model.h"
#include "decoder/sideband/sideband.h"
#include "perfdata/reader.h"
#include "tracedb/tracedb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum {
    MEMORY = 256 << 20, /* for calls, and for sorting them */
    SHARE = 4,          /* the part of what may be taken that is for either */
    ENTRY = 16          /* bytes of memory for an entry of an index that is sorted */
};

struct job {
    const struct decode_options *options;

    struct pd_reader *reader;

    struct dec_images *images; /* NULL for raw input: `raw` has them */

    struct dec_sideband *sb;

    struct dec_inlines *inlines; /* NULL: not wanted */

    struct dec_raw_result raw;

    struct dec_session *session; /* NULL: there is none, each ring is decoded by itself */

    struct dec_flow_counts counts;

    struct timespec begun;

    bool terse; /* the events become calls, and nothing else */
};

static double seconds_since(const struct timespec *begun)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begun->tv_sec) + (double)(now.tv_nsec - begun->tv_nsec) / 1e9;
}

/* Where there is no terminal on stdout that a listing would go to. */
static void show_progress(const struct job *j, const char *what, uint64_t all)
{
    if (j->options->listing == DECODE_NO_LISTING || !isatty(STDOUT_FILENO))
        st_progress(what, all);
}

/* 0: not known. */
static uint64_t size_of(const char *path)
{
    struct stat st;

    return st_infile_stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static uint64_t trace_size(const struct job *j)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < j->options->raw.traces.n; i++)
        bytes += size_of(j->options->raw.traces.at[i]);
    for (size_t i = 0; i < j->sb->rings.n; i++)
        bytes += j->sb->rings.at[i].bytes;
    return bytes;
}

/* Whether the recording is of this machine and kernel: then this process's vdso is the one that was recorded.
 */
static bool recorded_here(const struct pd_reader *reader)
{
    const char *host = pd_reader_string(reader, PD_FEAT_HOSTNAME);
    const char *release = pd_reader_string(reader, PD_FEAT_OSRELEASE);
    struct utsname here;

    return host && release && !uname(&here) && !strcmp(host, here.nodename) && !strcmp(release, here.release);
}

static void warn_of_no_calls(const struct job *j)
{
    const char *input = j->options->input;

    if (j->sb->unchained)
        st_log_warn("%s: its %" PRIu64
                    " samples hold no call chains, so there are no calls: record with `perf record -g`",
                    input, j->sb->unchained);
    else
        st_log_warn("%s: there is no Intel PT trace in it, and no sample, so there are no calls", input);
}

static int open_recording(struct job *j, struct st_error *err)
{
    struct dec_images_options images = {.symfs = j->options->symfs,
                                        .build_id_dirs = j->options->build_id_dirs.at,
                                        .nbuild_id_dirs = j->options->build_id_dirs.n};
    int rc = pd_reader_open(j->options->input, &j->reader, err);

    if (rc)
        return rc;
    images.own_vdso = recorded_here(j->reader);
    rc = dec_images_new(&images, &j->images, err);
    if (!rc)
        rc = dec_sideband_read(j->reader, j->images, &j->sb, err);
    if (rc)
        return rc;
    if (j->sb->skipped)
        st_log_warn("%s: %" PRIu64 " record(s) of types that this version does not know were left out",
                    j->options->input, j->sb->skipped);
    if ((!j->sb->has_pt || !j->sb->rings.n) && !j->sb->samples.n)
        warn_of_no_calls(j);
    return 0;
}

static int open_raw(struct job *j, struct st_error *err)
{
    int rc = dec_raw_open(&j->options->raw, &j->raw, err);

    return rc ? rc
              : dec_sideband_raw(j->options->raw.traces.n, &j->options->raw.config, j->raw.space, &j->sb,
                                 err);
}

static void forget(void *ctx, const uint8_t *bytes, size_t size)
{
    pd_reader_forget(ctx, bytes, size);
}

static int decode_ring(const struct job *j, size_t index, unsigned threads, dec_emit_fn *to, void *ctx,
                       struct dec_flow_counts *counts, struct st_error *err)
{
    const struct dec_ring *ring = &j->sb->rings.at[index];
    struct dec_flow_options options = {.config = j->sb->pt,
                                       .session = to ? j->session : NULL,
                                       .ring = (uint32_t)index,
                                       .snapshot = j->sb->snapshot,
                                       .threads = threads,
                                       .reference = j->options->raw.reference,
                                       .overwritten = ring->overwritten,
                                       .forget = forget,
                                       .forget_ctx = j->reader,
                                       .where = dec_sideband_where,
                                       .where_ctx = j->sb,
                                       .terse = j->terse,
                                       .emit = to,
                                       .emit_ctx = ctx};

    return dec_flow_run(&options, ring->pieces.at, ring->pieces.n, counts, err);
}

/* One of several that are decoded at once. */
static int decode_one(void *ctx, size_t ring, dec_emit_fn *to, void *to_ctx, struct dec_flow_counts *counts,
                      struct st_error *err)
{
    return decode_ring(ctx, ring, 1, to, to_ctx, counts, err);
}

/* Decodes all rings into `to` (NULL: counts only). */
static int decode_rings(void *ctx, dec_emit_fn *to, void *to_ctx, struct st_error *err)
{
    struct job *j = ctx;
    dec_emit_fn *through = to ? dec_turns_emit : NULL;
    struct dec_turns *turns = NULL;
    int rc;

    show_progress(j, "decoding", trace_size(j));
    rc = dec_turns_new(j->sb, to, to_ctx, &turns, err);

    if (rc)
        return rc;
    if (!j->reader) {
        struct dec_raw raw = j->options->raw;

        raw.terse = j->terse;
        rc = dec_raw_run(&raw, through, turns, &j->raw, err);
        j->counts = j->raw.counts;
    }
    for (size_t i = 0; j->reader && j->sb->has_pt && i < j->sb->rings.n && !rc; i++)
        rc = decode_ring(j, i, dec_raw_threads(&j->options->raw), through, turns, &j->counts, err);
    dec_turns_free(turns);
    return rc;
}

/* Of functions that were inlined every branch tells. */
static bool is_whole(void *ctx, const struct dec_stream_info *info)
{
    const struct job *j = ctx;

    (void)info;
    return j->inlines != NULL;
}

/* Into the model, which makes calls of what was decoded while more is. */
static int decode_into(struct job *j, struct dec_model *model, struct st_error *err)
{
    struct dec_relay_options relay = {.produce = decode_rings,
                                      .produce_ctx = j,
                                      .whole = is_whole,
                                      .whole_ctx = j,
                                      .consume = dec_model_emit,
                                      .consume_ctx = model};

    unsigned threads = dec_raw_threads(&j->options->raw);
    uint64_t memory = j->options->memory ? j->options->memory / SHARE : MEMORY;
    struct decode_rings rings = {
        .sb = j->sb, .model = model, .threads = threads, .decode = decode_one, .ctx = j};

    j->terse = !j->inlines;
    dec_model_threads(model, threads);
    if (threads < 2)
        return decode_rings(j, dec_model_emit, model, err);
    if (!j->reader || !j->sb->has_pt || j->inlines || !decode_rings_pays(j->sb, threads, memory))
        return dec_relay_run(&relay, err);
    show_progress(j, "decoding", trace_size(j));
    return decode_rings_run(&rings, &j->counts, err);
}

static int list_packets(struct job *j, struct st_error *err)
{
    int rc = 0;

    if (!j->reader)
        return dec_raw_packets(&j->options->raw, stdout, err);
    for (size_t i = 0; i < j->sb->rings.n && !rc; i++)
        rc = dec_dump_packets(stdout, &j->sb->pt, (uint32_t)i, j->sb->rings.at[i].pieces.at,
                              j->sb->rings.at[i].pieces.n, err);
    return rc;
}

static int ask_spill(void)
{
    return dec_ask(DEC_ASK_SPILL);
}

static int list_by(struct job *j, struct st_spill *spill, struct st_error *err)
{
    bool raw_time = !j->sb->pt.clock.known;
    struct decode_list *list;
    int rc = decode_list_new(stdout, j->sb, raw_time, j->options->listing == DECODE_CALLS, spill, &list, err);

    if (rc)
        return rc;
    rc = decode_rings(j, decode_list_emit, list, err);
    if (rc && decode_list_error(list)->code)
        *err = *decode_list_error(list);
    else if (rc && ferror(stdout))
        st_fail(err, ST_EFAIL, "cannot write the listing");
    else if (rc && !err->code)
        st_nomem(err, "the listing");
    if (!rc)
        rc = decode_list_end(list, err);
    decode_list_free(list);
    return rc;
}

static int list_branches(struct job *j, struct st_error *err)
{
    struct st_spill *spill;
    int rc = st_spill_new("/var/tmp/listing", j->options->memory ? j->options->memory / SHARE : MEMORY,
                          &spill, err);

    if (rc)
        return rc;
    st_spill_by(spill, ask_spill);
    rc = list_by(j, spill, err);
    st_spill_free(spill);
    return rc;
}

static int write_to(struct job *j, int fd, struct dec_model *model, struct st_error *err)
{
    struct dec_provenance from = {.reader = j->reader,
                                  .snapshot = j->reader ? j->options->input : j->options->raw.traces.at[0],
                                  .flow = &j->counts,
                                  .seconds = seconds_since(&j->begun),
                                  .lines = !j->options->bare};
    struct tdb_writer *w;
    int rc = tdb_writer_open_fd(fd, j->options->output, &w, err);

    if (rc)
        return rc;
    tdb_writer_threads(w, dec_raw_threads(&j->options->raw));
    tdb_writer_bare(w, j->options->bare);
    if (j->options->memory)
        tdb_writer_sorts(w, j->options->memory / SHARE / ENTRY + 1);
    show_progress(j, "writing", 0);
    rc = dec_model_write(model, w, &from, err);
    if (!rc)
        return tdb_writer_commit(w, j->options->replace, err);
    tdb_writer_abort(w);
    return rc;
}

static int write_database(struct job *j, struct dec_model *model, struct st_error *err)
{
    int fd = dec_ask(DEC_ASK_OUT);
    int rc = fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot write '%s'", j->options->output)
                    : write_to(j, fd, model, err);

    if (fd >= 0)
        close(fd);
    return rc;
}

/* What is said when the database has its name. */
static void tell(const struct job *j, const struct dec_model *model)
{
    struct dec_model_totals t = dec_model_totals(model);
    char calls[32], history[24], gaps[32];
    char *line = NULL;
    size_t length;
    FILE *to = open_memstream(&line, &length);

    if (!to)
        return;
    fprintf(to, "wrote %s (%s call%s", j->options->output, st_format_count(t.calls, calls, sizeof(calls)),
            t.calls == 1 ? "" : "s");
    if (t.last > t.first && j->sb->pt.clock.known)
        fprintf(to, ", %s of history",
                st_format_duration((int64_t)(t.last - t.first), history, sizeof(history)));
    if (t.gaps)
        fprintf(to, ", %s gap%s", st_format_count(t.gaps, gaps, sizeof(gaps)), t.gaps == 1 ? "" : "s");
    fprintf(to, ")\n");
    if (!fclose(to))
        dec_tell(line);
    free(line);
}

/* Where calls of functions that were inlined are missing. */
static void tell_inlines(const struct job *j)
{
    size_t n = j->inlines ? dec_inlines_without(j->inlines) : 0, length;
    char *names = NULL;
    FILE *out = n ? open_memstream(&names, &length) : NULL;

    for (size_t i = 0; i < n && out; i++)
        fprintf(out, "%s%s", i ? ", " : "", dec_inlines_without_at(j->inlines, i)->name);
    if (out && !fclose(out))
        st_log_warn("no DWARF: %s. What the compiler inlined there is part of the functions around it",
                    names);
    free(names);
    if (j->inlines && dec_inlines_broke(j->inlines))
        st_log_warn("reading DWARF broke off: the calls of some functions that were inlined are missing");
}

static int to_database_by(struct job *j, struct st_spill *spill, uint64_t *calls, struct st_error *err)
{
    struct dec_model *model;
    int rc = dec_model_new(j->sb, spill, &model, err);

    if (rc)
        return rc;
    if (j->options->inlined)
        rc = dec_inlines_open(j->reader ? j->images : j->raw.images, &j->inlines, err);
    dec_model_set_inlines(model, j->inlines);
    if (!rc)
        rc = decode_into(j, model, err);
    if (rc && dec_model_error(model)->code)
        *err = *dec_model_error(model);
    if (!rc && !j->sb->has_pt)
        show_progress(j, "making calls", 0);
    if (!rc && !j->sb->has_pt)
        rc = dec_model_samples(model, err);
    if (!rc)
        rc = dec_model_end(model, err);
    if (!rc)
        rc = write_database(j, model, err);
    if (!rc) {
        *calls = dec_model_totals(model).calls;
        st_progress_end();
        tell_inlines(j);
        tell(j, model);
    }
    dec_model_free(model);
    return rc;
}

static int to_database(struct job *j, uint64_t *calls, struct st_error *err)
{
    struct st_spill *spill;
    int rc = st_spill_new(j->options->output, j->options->memory ? j->options->memory / SHARE : MEMORY,
                          &spill, err);

    if (rc)
        return rc;
    st_spill_by(spill, ask_spill);
    rc = to_database_by(j, spill, calls, err);
    st_spill_free(spill);
    return rc;
}

static int run(struct job *j, struct st_error *err)
{
    const struct decode_options *o = j->options;
    struct dec_stats stats = {0};
    int rc;

    if (o->listing == DECODE_PACKETS)
        return list_packets(j, err);
    if (o->listing == DECODE_SAMPLES)
        return dec_dump_samples(stdout, j->sb, err);
    if (o->listing != DECODE_NO_LISTING)
        return list_branches(j, err);
    rc = o->output ? to_database(j, &stats.calls, err) : decode_rings(j, NULL, NULL, err);
    st_progress_end();
    if (rc || !o->stats)
        return rc;
    stats.flow = j->counts;
    stats.returns = j->counts.ret;
    if (!o->output)
        stats.calls = j->counts.call;
    stats.seconds = seconds_since(&j->begun);
    return dec_stats_print(stdout, &stats, err);
}

int decode_run(const struct decode_options *options, struct st_error *err)
{
    struct job j = {.options = options};
    int rc;

    clock_gettime(CLOCK_MONOTONIC, &j.begun);
    show_progress(&j, "reading", options->input ? size_of(options->input) : 0);
    rc = options->input ? open_recording(&j, err) : open_raw(&j, err);
    if (!rc && options->input && j.sb->rings.n > 1)
        rc = dec_session_new(trace_size(&j), &j.session, err);
    if (!rc)
        rc = run(&j, err);
    st_progress_end();
    dec_inlines_close(j.inlines);
    dec_session_free(j.session);
    dec_sideband_free(j.sb);
    dec_raw_result_free(&j.raw);
    dec_images_free(j.images);
    pd_reader_close(j.reader);
    return rc;
}
