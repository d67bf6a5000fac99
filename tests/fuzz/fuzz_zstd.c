/* libFuzzer: compressed records of a perf.data. The first byte says how the rest becomes two of them: as it
 * is, or packed first, so that what comes out is foreign too. */
#include "fuzz.h"

#include "perfdata/format.h"
#include "perfdata/reader.h"

#include <zstd.h>

enum { HEADER = 2, MOST = 60000 };

static volatile uint64_t sink;

struct made {
    uint8_t bytes[2 * 65536];

    size_t n;
};

static void add(struct made *m, const void *bytes, size_t n)
{
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void begin(struct made *m)
{
    const struct pd_pipe_header header = {PD_MAGIC, sizeof(header)};
    struct perf_event_attr attr = {
        .size = sizeof(attr), .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME, .sample_id_all = 1};
    struct perf_event_header h = {.type = PD_RECORD_HEADER_ATTR, .size = sizeof(h) + sizeof(attr) + 8};
    uint64_t id = 1;

    add(m, &header, sizeof(header));
    add(m, &h, sizeof(h));
    add(m, &attr, sizeof(attr));
    add(m, &id, sizeof(id));
}

static void add_record(struct made *m, bool second_form, const uint8_t *bytes, size_t n)
{
    static const uint8_t zeros[8];
    const uint64_t size = n, pad = second_form ? -n % 8 : 0;
    struct perf_event_header h = {.type = second_form ? PD_RECORD_COMPRESSED2 : PD_RECORD_COMPRESSED,
                                  .size = (uint16_t)(sizeof(h) + (second_form ? 8 : 0) + n + pad)};

    add(m, &h, sizeof(h));
    if (second_form)
        add(m, &size, sizeof(size));
    add(m, bytes, n);
    add(m, zeros, pad);
}

static int take(void *ctx, const struct pd_record *record, struct st_error *err)
{
    const uint8_t *at = (const uint8_t *)record->header;
    struct pd_sample sample;
    size_t *n = ctx;

    ++*n;
    for (size_t i = 0; i < record->header->size; i++)
        sink += at[i];
    if (record->header->type == PERF_RECORD_SAMPLE && !pd_record_sample(record, &sample, err))
        sink += sample.user_stack_size;
    return 0;
}

static void read_twice(const struct made *m)
{
    struct pd_reader *reader = NULL;
    struct st_error err = {0};
    size_t first = 0, second = 0;
    int fd = fuzz_file(m->bytes, m->n);

    if (!pd_reader_open_fd(fd, "fuzz", &reader, &err)) {
        fuzz_must(!pd_reader_each(reader, take, &first, &err) || err.text[0]);
        pd_reader_each(reader, take, &second, NULL);
        fuzz_must(first == second);
    }
    pd_reader_close(reader);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t packed[MOST];
    static struct made m;
    bool pack, second_form;
    size_t n, cut;

    if (size <= HEADER)
        return 0;
    pack = data[0] & 1;
    second_form = data[0] & 2;
    n = size - HEADER < MOST / 2 ? size - HEADER : MOST / 2;
    memcpy(packed, data + HEADER, n);
    if (pack) {
        n = ZSTD_compress(packed, sizeof(packed), data + HEADER, n, 1);
        fuzz_must(!ZSTD_isError(n));
    }
    cut = n * data[1] / 256;
    m.n = 0;
    begin(&m);
    add_record(&m, second_form, packed, cut);
    add_record(&m, second_form, packed + cut, n - cut);
    read_twice(&m);
    return 0;
}
