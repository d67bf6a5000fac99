/* Writes a perf.data: header, ids, attributes, records as they come, features at the end. */
#include "perfdata/writer.h"
#include "base/folder.h"
#include "perfdata/shape.h"
#include "perfdata/writer_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER 65536

static int fail(struct pd_writer *w, int code)
{
    if (code < 0 && !w->failed)
        w->failed = code;
    return code;
}

static void free_writer(struct pd_writer *w)
{
    pd_events_free(&w->events);
    st_vec_free(&w->auxtrace);
    st_vec_free(&w->build_ids.bytes);
    st_vec_free(&w->tracing.bytes);
    for (size_t i = 0; i < w->cmdline.n; i++)
        free(w->cmdline.at[i]);
    st_vec_free(&w->cmdline);
    for (size_t i = 0; i < w->pmus.n; i++)
        free(w->pmus.at[i].name);
    st_vec_free(&w->pmus);
    for (size_t i = 0; i <= PD_FEAT_CPUID; i++)
        free(w->strings[i]);
    pd_folder_free(&w->folder);
    free(w->buffer);
    free(w);
}

/* In the open folder `folder`; -1: in the one that `path` leads to. */
static int open_output(struct pd_writer *w, int folder, const char *path, bool directory,
                       struct st_error *err)
{
    int rc;

    if (!directory && folder >= 0)
        return st_outfile_open_at(&w->out, folder, st_folder_name(path), path, err);
    if (!directory)
        return st_outfile_open(&w->out, path, err);
    rc = pd_folder_open(&w->folder, folder, path, err);
    return rc ? rc : st_outfile_open_at(&w->out, w->folder.fd, "data", w->folder.path, err);
}

int pd_writer_open(const char *path, bool directory, struct pd_writer **out, struct st_error *err)
{
    return pd_writer_open_at(-1, path, directory, out, err);
}

int pd_writer_open_at(int folder, const char *path, bool directory, struct pd_writer **out,
                      struct st_error *err)
{
    struct pd_writer *w = calloc(1, sizeof(*w));
    int rc;

    if (!w || !(w->buffer = malloc(BUFFER))) {
        free(w);
        return st_nomem(err, "writing a snapshot");
    }
    pd_folder_init(&w->folder);
    rc = open_output(w, folder, path, directory, err);
    if (!rc)
        rc = pd_describe_machine(w, err);
    if (!rc)
        rc = pd_emit(w, &w->header, sizeof(w->header), err);
    if (rc) {
        pd_writer_abort(w);
        return rc;
    }
    *out = w;
    return 0;
}

void pd_writer_abort(struct pd_writer *w)
{
    if (!w)
        return;
    st_outfile_abort(&w->out);
    pd_folder_remove(&w->folder);
    free_writer(w);
}

int pd_flush(struct pd_writer *w, struct st_error *err)
{
    int rc = w->buffered ? st_outfile_write(&w->out, w->buffer, w->buffered, err) : 0;

    w->buffered = 0;
    return fail(w, rc);
}

int pd_emit(struct pd_writer *w, const void *data, size_t n, struct st_error *err)
{
    if (w->failed)
        return st_fail(err, w->failed, "cannot write '%s': an earlier write failed", w->out.path);
    w->size += n;
    if (n > BUFFER - w->buffered && pd_flush(w, err))
        return w->failed;
    if (n > BUFFER)
        return fail(w, st_outfile_write(&w->out, data, n, err));
    if (n)
        memcpy(w->buffer + w->buffered, data, n);
    w->buffered += n;
    return 0;
}

int pd_writer_add_event(struct pd_writer *w, const struct perf_event_attr *attr, const uint64_t *ids,
                        size_t nids, const char *name, struct st_error *err)
{
    struct perf_event_attr copy = *attr;
    int rc;

    if (w->begun)
        return fail(w, st_fail(err, ST_EFAIL, "cannot write '%s': event '%s' comes after the first record",
                               w->out.path, name));
    copy.size = sizeof(copy);
    rc = pd_events_add(&w->events, &copy, sizeof(copy), ids, nids, err);
    if (!rc)
        rc = pd_events_rename(&w->events, w->events.list.n - 1, name, strlen(name), err);
    return fail(w, rc);
}

static int emit_ids(struct pd_writer *w, const struct pd_event *event, struct pd_file_section *place,
                    struct st_error *err)
{
    *place = (struct pd_file_section){w->size, event->nids * sizeof(*event->ids)};
    return pd_emit(w, event->ids, place->size, err);
}

static int emit_attrs(struct pd_writer *w, const struct pd_file_section *ids, struct st_error *err)
{
    int rc = 0;

    w->header.attr_size = sizeof(struct perf_event_attr) + sizeof(*ids);
    w->header.attrs = (struct pd_file_section){w->size, w->events.list.n * w->header.attr_size};
    for (size_t i = 0; !rc && i < w->events.list.n; i++) {
        rc = pd_emit(w, &w->events.list.at[i].event.attr, sizeof(struct perf_event_attr), err);
        if (!rc)
            rc = pd_emit(w, &ids[i], sizeof(ids[i]), err);
    }
    return rc;
}

/* Writes the events; from now on records follow. */
static int begin(struct pd_writer *w, struct st_error *err)
{
    struct pd_file_section *ids;
    int rc = 0;

    if (w->begun || w->failed)
        return 0;
    ids = calloc(w->events.list.n + 1, sizeof(*ids));
    if (!ids)
        return fail(w, st_nomem(err, "writing a snapshot"));
    if (pd_events_seal(&w->events, err))
        rc = fail(w, st_prefix(err, "cannot write '%s': ", w->out.path));
    for (size_t i = 0; !rc && i < w->events.list.n; i++)
        rc = emit_ids(w, &w->events.list.at[i].event, &ids[i], err);
    if (!rc)
        rc = emit_attrs(w, ids, err);
    free(ids);
    if (rc)
        return rc;
    w->header.data.offset = w->size;
    w->begun = true;
    return 0;
}

static void note_time(struct pd_writer *w, uint64_t time)
{
    if (!time)
        return;
    if (!w->first_time || time < w->first_time)
        w->first_time = time;
    if (time > w->last_time)
        w->last_time = time;
}

static int refuse(struct pd_writer *w, const struct perf_event_header *record, const char *why,
                  struct st_error *err)
{
    return fail(w, st_fail(err, ST_EFAIL, "cannot write a record %s (%u) of %u bytes to '%s': %s",
                           pd_record_name(record->type), record->type, record->size, w->out.path, why));
}

int pd_writer_record(struct pd_writer *w, const struct perf_event_header *record, struct st_error *err)
{
    const struct pd_event *event;
    struct pd_sample_id id;
    const char *problem = NULL;
    int rc = begin(w, err);

    if (rc)
        return rc;
    if (record->type == PD_RECORD_AUXTRACE)
        problem = "its trace is missing";
    else if (record->size < sizeof(*record) || record->size % 8)
        problem = "a wrong size";
    else
        problem = pd_shape_problem(record);
    if (!problem)
        problem = pd_events_identify(&w->events, record, &event, &id);
    if (problem)
        return refuse(w, record, problem, err);
    if (id.has & PERF_SAMPLE_TIME)
        note_time(w, id.time);
    return pd_emit(w, record, record->size, err);
}

/* The fields of a sample before its raw data, in the order of PERF_RECORD_SAMPLE in <linux/perf_event.h>. */
static size_t sample_words(uint64_t *words, uint64_t type, const struct pd_made_sample *s)
{
    size_t n = 0;

    if (type & PERF_SAMPLE_IDENTIFIER)
        words[n++] = s->id;
    if (type & PERF_SAMPLE_IP)
        words[n++] = 0;
    if (type & PERF_SAMPLE_TID)
        words[n++] = s->pid | (uint64_t)s->tid << 32;
    if (type & PERF_SAMPLE_TIME)
        words[n++] = s->time;
    if (type & PERF_SAMPLE_ID)
        words[n++] = s->id;
    if (type & PERF_SAMPLE_CPU)
        words[n++] = s->cpu;
    if (type & PERF_SAMPLE_PERIOD)
        words[n++] = 1;
    return n;
}

#define MADE_FIELDS                                                                                          \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |         \
     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)

static int emit_raw(struct pd_writer *w, const struct pd_made_sample *s, size_t padded, struct st_error *err)
{
    static const uint8_t zeros[8];
    uint32_t size = (uint32_t)(padded - sizeof(size));
    int rc = pd_emit(w, &size, sizeof(size), err);

    if (!rc)
        rc = pd_emit(w, s->raw, s->raw_size, err);
    return rc ? rc : pd_emit(w, zeros, size - s->raw_size, err);
}

int pd_writer_sample(struct pd_writer *w, size_t index, const struct pd_made_sample *s, struct st_error *err)
{
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER};
    uint64_t words[8], type;
    size_t n, raw, total;
    int rc = begin(w, err);

    if (rc)
        return rc;
    if (index >= w->events.list.n)
        return refuse(w, &header, "no such event", err);
    type = w->events.list.at[index].event.attr.sample_type;
    if (type & ~MADE_FIELDS || (s->raw_size && !(type & PERF_SAMPLE_RAW)))
        return refuse(w, &header, "its event asks for other fields", err);
    n = sample_words(words, type, s);
    /* The kernel pads raw data so that they end at a whole word, and counts the padding. */
    raw = type & PERF_SAMPLE_RAW ? (sizeof(uint32_t) + s->raw_size + 7) / 8 * 8 : 0;
    total = sizeof(header) + n * 8 + raw;
    if (total > UINT16_MAX)
        return refuse(w, &header, "its data are more than a record can hold", err);
    header.size = (uint16_t)total;
    if (type & PERF_SAMPLE_TIME)
        note_time(w, s->time);
    rc = pd_emit(w, &header, sizeof(header), err);
    if (!rc)
        rc = pd_emit(w, words, n * 8, err);
    return rc || !raw ? rc : emit_raw(w, s, raw, err);
}

int pd_writer_auxtrace(struct pd_writer *w, const struct pd_auxtrace *head, const void *a, size_t na,
                       const void *b, size_t nb, struct st_error *err)
{
    static const uint8_t zeros[8];
    struct pd_auxtrace record = *head;
    size_t padding = -(na + nb) % 8;
    int rc = begin(w, err);

    if (rc || na + nb == 0)
        return rc;
    record.header = (struct perf_event_header){.type = PD_RECORD_AUXTRACE, .size = sizeof(record)};
    record.size = na + nb + padding;
    if (st_vec_push(&w->auxtrace, (struct pd_auxtrace_index_entry){w->size, sizeof(record)}))
        return fail(w, st_nomem(err, "the index of trace buffers"));
    rc = pd_emit(w, &record, sizeof(record), err);
    if (!rc)
        rc = pd_emit(w, a, na, err);
    if (!rc)
        rc = pd_emit(w, b, nb, err);
    return rc ? rc : pd_emit(w, zeros, padding, err);
}

uint64_t pd_writer_size(const struct pd_writer *w)
{
    return w->size;
}

int pd_writer_stat(const struct pd_writer *w, struct stat *st, struct st_error *err)
{
    return fstat(w->out.fd, st) ? st_fail_errno(err, ST_EFAIL, "cannot look at the file that is written") : 0;
}

static int write_header(struct pd_writer *w, struct st_error *err)
{
    const char *at = (const char *)&w->header;
    size_t done = 0;

    memcpy(w->header.magic, PD_MAGIC, sizeof(w->header.magic));
    w->header.size = sizeof(w->header);
    while (done < sizeof(w->header)) {
        ssize_t n = pwrite(w->out.fd, at + done, sizeof(w->header) - done, (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return st_fail_errno(err, ST_EFAIL, "cannot write '%s'", w->out.path);
        done += (size_t)n;
    }
    return 0;
}

/* A file whose data have no bytes looks like one that was never finished. */
static int ensure_data(struct pd_writer *w, struct st_error *err)
{
    struct perf_event_header nothing = {.type = PD_RECORD_FINISHED_ROUND, .size = sizeof(nothing)};

    return w->size > w->header.data.offset ? 0 : pd_emit(w, &nothing, sizeof(nothing), err);
}

static int finish(struct pd_writer *w, struct st_error *err)
{
    int rc = w->failed ? st_fail(err, w->failed, "cannot write '%s': an earlier write failed", w->out.path)
                       : begin(w, err);

    if (!rc)
        rc = ensure_data(w, err);
    if (rc)
        return rc;
    w->header.data.size = w->size - w->header.data.offset;
    rc = pd_write_features(w, err);
    if (!rc)
        rc = pd_flush(w, err);
    if (!rc)
        rc = write_header(w, err);
    if (!rc)
        rc = st_outfile_commit(&w->out, false, err);
    return rc || w->folder.fd < 0 ? rc : pd_folder_commit(&w->folder, err);
}

int pd_writer_commit(struct pd_writer *w, struct st_error *err)
{
    int rc = finish(w, err);

    if (rc)
        pd_writer_abort(w);
    else
        free_writer(w);
    return rc;
}
