/* What `decode` does, step by step. */
#include "decoder/decode_job.h"

#include "base/log.h"
#include "base/spool.h"
#include "base/units.h"
#include "decoder/decode_list.h"
#include "decoder/model.h"
#include "decoder/relay.h"
#include "decoder/sideband.h"
#include "decoder/stats.h"
#include "perfdata/reader.h"
#include "tracedb/tracedb.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY = 256 << 20, ENTRY = 16 /* bytes of memory for an entry of an index that is sorted */ };

struct job {
    const struct decode_options *options;

    struct pd_reader *reader;

    struct dec_images *images; /* NULL for raw input: `raw` has them */

    struct dec_sideband *sb;

    struct dec_raw_result raw;

    struct dec_flow_counts counts;

    struct timespec begun;

    dec_emit_fn *emit; /* behind the progress, by thread */

    void *emit_ctx;

    bool terse; /* the events become calls, and nothing else */

    bool progress; /* stderr is a terminal */

    bool said; /* a progress line stands there */

    time_t last_said;
};

static double seconds_since(const struct timespec *begun)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begun->tv_sec) + (double)(now.tv_nsec - begun->tv_nsec) / 1e9;
}

/* Whether it is time for another word on the progress. */
static bool may_say(struct job *j)
{
    time_t now = time(NULL);

    if (!j->progress || now == j->last_said || seconds_since(&j->begun) < 1)
        return false;
    j->last_said = now;
    j->said = true;
    return true;
}

static void say_decoding(struct job *j)
{
    char done[24], all[24];
    uint64_t bytes = 0;

    if (!may_say(j))
        return;
    for (size_t i = 0; i < j->sb->rings.n; i++)
        bytes += j->sb->rings.at[i].bytes;
    fprintf(stderr, "\rdecoding: %s of %s of trace\033[K",
            st_format_size(j->counts.bytes, done, sizeof(done)), st_format_size(bytes, all, sizeof(all)));
}

static void say_share(struct job *j, const char *what, uint64_t done, uint64_t all)
{
    if (all && may_say(j))
        fprintf(stderr, "\r%s: %" PRIu64 " %%\033[K", what, done * 100 / all);
}

static void say_building(void *ctx, uint64_t done, uint64_t all)
{
    say_share(ctx, "making calls", done, all);
}

static void say_writing(void *ctx, uint64_t done, uint64_t all)
{
    say_share(ctx, "writing", done, all);
}

static int emit(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                const char *detail)
{
    struct job *j = ctx;

    say_decoding(j);
    return j->emit(j->emit_ctx, info, events, n, detail);
}

static void end_progress(struct job *j)
{
    if (j->said)
        fprintf(stderr, "\r\033[K");
    j->said = false;
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
        st_log_warn("%s: there is no Intel PT trace in it, and no sample, so there are no calls",
                    j->options->input);
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

static int decode_ring(struct job *j, size_t index, dec_emit_fn *to, void *ctx, struct st_error *err)
{
    const struct dec_ring *ring = &j->sb->rings.at[index];
    struct dec_flow_options options = {.config = j->sb->pt,
                                       .ring = (uint32_t)index,
                                       .snapshot = j->sb->snapshot,
                                       .threads = dec_raw_threads(&j->options->raw),
                                       .reference = j->options->raw.reference,
                                       .overwritten = ring->overwritten,
                                       .forget = forget,
                                       .forget_ctx = j->reader,
                                       .where = dec_sideband_where,
                                       .where_ctx = j->sb,
                                       .terse = j->terse && ring->cpu >= 0,
                                       .emit = to,
                                       .emit_ctx = ctx};

    return dec_flow_run(&options, ring->pieces.at, ring->pieces.n, &j->counts, err);
}

/* Decodes all rings into `to` (NULL: counts only). */
static int decode_rings(void *ctx, dec_emit_fn *to, void *to_ctx, struct st_error *err)
{
    struct job *j = ctx;
    dec_emit_fn *through = to ? dec_turns_emit : NULL;
    struct dec_turns *turns = NULL;
    int rc = dec_turns_new(j->sb, to, to_ctx, &turns, err);

    if (rc)
        return rc;
    if (!j->reader) {
        rc = dec_raw_run(&j->options->raw, through, turns, &j->raw, err);
        j->counts = j->raw.counts;
    }
    for (size_t i = 0; j->reader && j->sb->has_pt && i < j->sb->rings.n && !rc; i++)
        rc = decode_ring(j, i, through, turns, err);
    dec_turns_free(turns);
    return rc;
}

static int decode_all(struct job *j, dec_emit_fn *to, void *ctx, struct st_error *err)
{
    int rc;

    j->emit = to;
    j->emit_ctx = ctx;
    rc = decode_rings(j, to ? emit : NULL, j, err);
    end_progress(j);
    return rc;
}

/* The stacks of a thread's own ring take the time of every event. */
static bool of_thread(void *ctx, const struct dec_stream_info *info)
{
    const struct job *j = ctx;

    return j->sb->rings.at[info->ring].cpu < 0;
}

/* Into the model, which makes calls of what was decoded while more is. */
static int decode_into(struct job *j, struct dec_model *model, struct st_error *err)
{
    struct dec_relay_options relay = {.produce = decode_rings,
                                      .produce_ctx = j,
                                      .whole = of_thread,
                                      .whole_ctx = j,
                                      .consume = emit,
                                      .consume_ctx = j};
    int rc;

    j->terse = true;
    if (dec_raw_threads(&j->options->raw) < 2)
        return decode_all(j, dec_model_emit, model, err);
    j->emit = dec_model_emit;
    j->emit_ctx = model;
    rc = dec_relay_run(&relay, err);
    end_progress(j);
    return rc;
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

static int list_branches(struct job *j, struct st_error *err)
{
    bool raw_time = !j->sb->pt.clock.known;
    struct decode_list *list;
    int rc = decode_list_new(stdout, j->sb, raw_time, j->options->listing == DECODE_CALLS, &list, err);

    if (rc)
        return rc;
    j->progress = false;
    rc = decode_all(j, decode_list_emit, list, err);
    if (rc && ferror(stdout))
        st_fail(err, ST_EFAIL, "cannot write the listing");
    else if (rc && !err->code)
        st_nomem(err, "the listing");
    if (!rc)
        rc = decode_list_end(list, err);
    decode_list_free(list);
    return rc;
}

static int write_database(struct job *j, struct dec_model *model, struct st_error *err)
{
    struct dec_provenance from = {.reader = j->reader,
                                  .snapshot = j->reader ? j->options->input : j->options->raw.traces.at[0],
                                  .flow = &j->counts,
                                  .seconds = seconds_since(&j->begun),
                                  .lines = !j->options->bare};
    struct tdb_writer *w;
    int rc = tdb_writer_open(j->options->output, &w, err);

    if (rc)
        return rc;
    tdb_writer_threads(w, dec_raw_threads(&j->options->raw));
    tdb_writer_bare(w, j->options->bare);
    if (j->options->memory)
        tdb_writer_sorts(w, j->options->memory / ENTRY + 1);
    tdb_writer_progress(w, say_writing, j);
    rc = dec_model_write(model, w, &from, err);
    if (rc)
        tdb_writer_abort(w);
    else
        rc = tdb_writer_commit(w, j->options->replace, err);
    end_progress(j);
    return rc;
}

static void tell(const struct job *j, const struct dec_model *model)
{
    struct dec_model_totals t = dec_model_totals(model);
    char calls[32], history[24], gaps[32];
    FILE *to = j->options->stats ? stderr : stdout;

    fprintf(to, "wrote %s (%s call%s", j->options->output, st_format_count(t.calls, calls, sizeof(calls)),
            t.calls == 1 ? "" : "s");
    if (t.last > t.first && j->sb->pt.clock.known)
        fprintf(to, ", %s of history",
                st_format_duration((int64_t)(t.last - t.first), history, sizeof(history)));
    if (t.gaps)
        fprintf(to, ", %s gap%s", st_format_count(t.gaps, gaps, sizeof(gaps)), t.gaps == 1 ? "" : "s");
    fprintf(to, ")\n");
}

static int to_database_by(struct job *j, struct st_spill *spill, uint64_t *calls, struct st_error *err)
{
    struct dec_model *model;
    int rc = dec_model_new(j->sb, spill, &model, err);

    if (rc)
        return rc;
    rc = decode_into(j, model, err);
    if (rc && dec_model_error(model)->code)
        *err = *dec_model_error(model);
    if (!rc && !j->sb->has_pt)
        rc = dec_model_samples(model, err);
    dec_model_progress(model, say_building, j);
    if (!rc)
        rc = dec_model_end(model, err);
    end_progress(j);
    if (!rc)
        rc = write_database(j, model, err);
    if (!rc) {
        *calls = dec_model_totals(model).calls;
        tell(j, model);
    }
    dec_model_free(model);
    return rc;
}

static int to_database(struct job *j, uint64_t *calls, struct st_error *err)
{
    struct st_spill *spill;
    int rc = st_spill_new(j->options->output, j->options->memory ? j->options->memory : MEMORY, &spill, err);

    if (rc)
        return rc;
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
    rc = o->output ? to_database(j, &stats.calls, err) : decode_all(j, NULL, NULL, err);
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
    struct job j = {.options = options, .progress = isatty(STDERR_FILENO)};
    int rc;

    clock_gettime(CLOCK_MONOTONIC, &j.begun);
    rc = options->input ? open_recording(&j, err) : open_raw(&j, err);
    if (!rc)
        rc = run(&j, err);
    dec_sideband_free(j.sb);
    dec_raw_result_free(&j.raw);
    dec_images_free(j.images);
    pd_reader_close(j.reader);
    return rc;
}
