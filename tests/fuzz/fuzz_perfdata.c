/* libFuzzer: any bytes as a perf.data, read to the last field. */
#include "perfdata/reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Everything that a record or sample leads to is touched: the sanitizers see what lies outside. */
static volatile uint64_t sink;

static void touch(const void *data, uint64_t size)
{
    const uint8_t *at = data;

    for (uint64_t i = 0; i < size; i++)
        sink += at[i];
}

static void touch_sample(const struct pd_sample *s)
{
    touch(s->callchain, s->callchain ? s->ncallchain * 8 : 0);
    touch(s->raw, s->raw_size);
    touch(s->user_stack, s->user_stack_size);
    touch(s->branches, s->nbranches * sizeof(*s->branches));
    touch(s->aux, s->aux_size);
}

static int on_record(void *ctx, const struct pd_record *record, struct st_error *err)
{
    const struct perf_event_header *h = record->header;
    struct pd_sample s;
    size_t *n = ctx;

    ++*n;
    touch(h, h->size);
    if (record->aux)
        touch(record->aux, ((const struct pd_auxtrace *)h)->size);
    if (h->type == PERF_RECORD_MMAP2)
        sink += strlen((const char *)h + 72);
    if (h->type == PERF_RECORD_COMM)
        sink += strlen((const char *)h + 16);
    if (record->event)
        sink += record->event->index + strlen(record->event->name);
    if (h->type == PERF_RECORD_SAMPLE && !pd_record_sample(record, &s, err))
        touch_sample(&s);
    return 0;
}

static int on_build_id(void *ctx, const struct pd_build_id *id)
{
    (void)ctx;
    sink += strlen(id->filename) + id->id[id->id_size ? id->id_size - 1 : 0];
    return 0;
}

static void read_all(struct pd_reader *reader)
{
    struct st_error err = {0};
    size_t first = 0, second = 0;

    for (size_t i = 0; i < pd_reader_nevents(reader); i++)
        touch(pd_reader_event(reader, i)->ids, pd_reader_event(reader, i)->nids * 8);
    for (enum pd_feature f = 0; f < PD_FEAT_BITS; f++) {
        const char *text = pd_reader_string(reader, f);
        size_t size;
        const void *bytes = pd_reader_feature(reader, f, &size);

        touch(bytes, size);
        sink += text ? strlen(text) : 0;
    }
    pd_reader_build_ids(reader, on_build_id, NULL, &err);
    if (pd_reader_each(reader, on_record, &first, &err) && !err.text[0])
        abort();
    pd_reader_each(reader, on_record, &second, NULL);
    if (first != second)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pd_reader *reader = NULL;
    struct st_error err = {0};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    if (!pd_reader_open_fd(fd, "fuzz", &reader, &err))
        read_all(reader);
    else if (reader || !err.text[0])
        abort();
    pd_reader_close(reader);
    close(fd);
    return 0;
}
