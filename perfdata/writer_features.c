/* The feature sections: tools/perf/util/header.c, tools/perf/Documentation/perf.data-file-format.txt. */
#include "perfdata/writer_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void pd_blob_add(struct pd_blob *blob, const void *data, size_t n)
{
    if (blob->failed || n == 0)
        return;
    if (st_vec_reserve(&blob->bytes, n)) {
        blob->failed = true;
        return;
    }
    memcpy(blob->bytes.at + blob->bytes.n, data, n);
    blob->bytes.n += n;
}

static void add_u32(struct pd_blob *blob, uint32_t value)
{
    pd_blob_add(blob, &value, sizeof(value));
}

static void add_u64(struct pd_blob *blob, uint64_t value)
{
    pd_blob_add(blob, &value, sizeof(value));
}

static void add_zeros(struct pd_blob *blob, size_t n)
{
    static const uint8_t zeros[PD_NAME_ALIGN];

    pd_blob_add(blob, zeros, n);
}

static size_t padded_length(const char *text)
{
    return strlen(text) / PD_NAME_ALIGN * PD_NAME_ALIGN + PD_NAME_ALIGN;
}

static void add_string(struct pd_blob *blob, const char *text)
{
    size_t n = strlen(text);

    add_u32(blob, (uint32_t)padded_length(text));
    pd_blob_add(blob, text, n);
    add_zeros(blob, padded_length(text) - n);
}

static void add_build_ids(const struct pd_writer *w, struct pd_blob *blob)
{
    pd_blob_add(blob, w->build_ids.bytes.at, w->build_ids.bytes.n);
}

static void add_tracing(const struct pd_writer *w, struct pd_blob *blob)
{
    pd_blob_add(blob, w->tracing.bytes.at, w->tracing.bytes.n);
}

static void add_cpus(const struct pd_writer *w, struct pd_blob *blob)
{
    (void)w;
    add_u32(blob, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
    add_u32(blob, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
}

static void add_memory(const struct pd_writer *w, struct pd_blob *blob)
{
    (void)w;
    add_u64(blob, (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

static void add_cmdline(const struct pd_writer *w, struct pd_blob *blob)
{
    if (!w->cmdline.n)
        return;
    add_u32(blob, (uint32_t)w->cmdline.n);
    for (size_t i = 0; i < w->cmdline.n; i++)
        add_string(blob, w->cmdline.at[i]);
}

static void add_event_desc(const struct pd_writer *w, struct pd_blob *blob)
{
    add_u32(blob, (uint32_t)w->events.list.n);
    add_u32(blob, sizeof(struct perf_event_attr));
    for (size_t i = 0; i < w->events.list.n; i++) {
        const struct pd_event *event = &w->events.list.at[i].event;

        pd_blob_add(blob, &event->attr, sizeof(event->attr));
        add_u32(blob, (uint32_t)event->nids);
        add_string(blob, event->name);
        pd_blob_add(blob, event->ids, event->nids * sizeof(*event->ids));
    }
}

static void add_pmus(const struct pd_writer *w, struct pd_blob *blob)
{
    if (!w->pmus.n)
        return;
    add_u32(blob, (uint32_t)w->pmus.n);
    for (size_t i = 0; i < w->pmus.n; i++) {
        add_u32(blob, w->pmus.at[i].type);
        add_string(blob, w->pmus.at[i].name);
    }
}

static void add_auxtrace(const struct pd_writer *w, struct pd_blob *blob)
{
    if (!w->auxtrace.n)
        return;
    add_u64(blob, w->auxtrace.n);
    pd_blob_add(blob, w->auxtrace.at, w->auxtrace.n * sizeof(*w->auxtrace.at));
}

static void add_times(const struct pd_writer *w, struct pd_blob *blob)
{
    if (!w->first_time)
        return;
    add_u64(blob, w->first_time);
    add_u64(blob, w->last_time);
}

/* A feature that adds nothing is left out. */
static void (*const adders[])(const struct pd_writer *w, struct pd_blob *blob) = {
    [PD_FEAT_TRACING_DATA] = add_tracing, [PD_FEAT_BUILD_ID] = add_build_ids,
    [PD_FEAT_NRCPUS] = add_cpus,          [PD_FEAT_TOTAL_MEM] = add_memory,
    [PD_FEAT_CMDLINE] = add_cmdline,      [PD_FEAT_EVENT_DESC] = add_event_desc,
    [PD_FEAT_PMU_MAPPINGS] = add_pmus,    [PD_FEAT_AUXTRACE] = add_auxtrace,
    [PD_FEAT_SAMPLE_TIME] = add_times,
};

#define NFEATURES (sizeof(adders) / sizeof(adders[0]))

static void add_feature(const struct pd_writer *w, unsigned bit, struct pd_blob *blob)
{
    if (adders[bit])
        adders[bit](w, blob);
    else if (bit <= PD_FEAT_CPUID && w->strings[bit])
        add_string(blob, w->strings[bit]);
}

int pd_write_features(struct pd_writer *w, struct st_error *err)
{
    struct pd_file_section table[NFEATURES];
    struct pd_blob blob = {0};
    size_t n = 0;
    int rc;

    for (unsigned bit = 0; bit < NFEATURES; bit++) {
        size_t start = blob.bytes.n;

        add_feature(w, bit, &blob);
        if (blob.bytes.n == start)
            continue;
        table[n++] = (struct pd_file_section){start, blob.bytes.n - start};
        w->header.features[bit / 64] |= 1ull << (bit % 64);
    }
    for (size_t i = 0; i < n; i++)
        table[i].offset += w->size + n * sizeof(table[0]);
    if (blob.failed)
        rc = st_nomem(err, "the features of a snapshot");
    else
        rc = pd_emit(w, table, n * sizeof(table[0]), err);
    if (!rc)
        rc = pd_emit(w, blob.bytes.at, blob.bytes.n, err);
    st_vec_free(&blob.bytes);
    return rc;
}

static bool is_string(enum pd_feature f)
{
    return f == PD_FEAT_HOSTNAME || f == PD_FEAT_OSRELEASE || f == PD_FEAT_VERSION || f == PD_FEAT_ARCH ||
           f == PD_FEAT_CPUDESC || f == PD_FEAT_CPUID;
}

int pd_writer_string(struct pd_writer *w, enum pd_feature feature, const char *text, struct st_error *err)
{
    char *copy;

    if (!is_string(feature))
        return st_fail(err, ST_EFAIL, "feature %d is no string", feature);
    copy = strdup(text);
    if (!copy)
        return st_nomem(err, "a feature of a snapshot");
    free(w->strings[feature]);
    w->strings[feature] = copy;
    return 0;
}

int pd_writer_build_id(struct pd_writer *w, int32_t pid, uint16_t misc, const uint8_t *id, size_t id_size,
                       const char *filename, struct st_error *err)
{
    struct pd_build_id_entry entry = {.pid = pid, .id_size = (uint8_t)id_size};
    size_t total = sizeof(entry) + padded_length(filename);
    size_t before = w->build_ids.bytes.n;

    if (id_size > sizeof(entry.id) || total > UINT16_MAX)
        return st_fail(err, ST_EFAIL, "cannot write the build id of '%.200s': it or the name is too long",
                       filename);
    memcpy(entry.id, id, id_size);
    entry.header.type = PD_RECORD_HEADER_BUILD_ID;
    entry.header.misc = misc | PD_MISC_BUILD_ID_SIZE;
    entry.header.size = (uint16_t)total;
    pd_blob_add(&w->build_ids, &entry, sizeof(entry));
    pd_blob_add(&w->build_ids, filename, strlen(filename));
    add_zeros(&w->build_ids, padded_length(filename) - strlen(filename));
    if (!w->build_ids.failed)
        return 0;
    w->build_ids.bytes.n = before;
    w->build_ids.failed = false;
    return st_nomem(err, "the build ids of a snapshot");
}

int pd_writer_tracing_data(struct pd_writer *w, const void *data, size_t n, struct st_error *err)
{
    w->tracing.bytes.n = 0;
    pd_blob_add(&w->tracing, data, n);
    if (!w->tracing.failed)
        return 0;
    w->tracing.failed = false;
    return st_nomem(err, "the description of tracepoints");
}

static void clear_cmdline(struct pd_writer *w)
{
    while (w->cmdline.n)
        free(w->cmdline.at[--w->cmdline.n]);
}

int pd_writer_cmdline(struct pd_writer *w, int argc, char *const *argv, struct st_error *err)
{
    clear_cmdline(w);
    for (int i = 0; i < argc; i++) {
        char *copy = strdup(argv[i]);

        if (!copy || st_vec_push(&w->cmdline, copy)) {
            free(copy);
            clear_cmdline(w);
            return st_nomem(err, "the command line");
        }
    }
    return 0;
}

static void drop_pmu(struct pd_writer *w, uint32_t type, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->pmus.n; i++) {
        if (w->pmus.at[i].type == type || !strcmp(w->pmus.at[i].name, name))
            free(w->pmus.at[i].name);
        else
            w->pmus.at[kept++] = w->pmus.at[i];
    }
    w->pmus.n = kept;
}

int pd_writer_pmu(struct pd_writer *w, uint32_t type, const char *name, struct st_error *err)
{
    char *copy = strdup(name);

    if (!copy || st_vec_reserve(&w->pmus, 1)) {
        free(copy);
        return st_nomem(err, "the names of PMUs");
    }
    drop_pmu(w, type, name);
    w->pmus.at[w->pmus.n++] = (struct pd_pmu){type, copy};
    return 0;
}
