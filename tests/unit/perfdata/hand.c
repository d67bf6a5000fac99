/* Makes files by hand. */
#include "hand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add_attr(struct file *f, uint64_t sample_type, bool sample_id_all, size_t attr_size)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = (uint32_t)attr_size};
    size_t known = attr_size < sizeof(attr) ? attr_size : sizeof(attr);
    const uint8_t unknown = 0xee;

    attr.sample_type = sample_type;
    attr.sample_id_all = sample_id_all;
    file_add(f, &attr, known);
    for (size_t i = known; i < attr_size; i++)
        file_add(f, &unknown, 1);
}

void hand_file(struct file *f, const uint64_t *sample_types, size_t n, bool sample_id_all, size_t attr_size)
{
    struct pd_file_header h = {.magic = PD_MAGIC, .size = sizeof(h)};
    const uint64_t ids_at = sizeof(h);

    f->bytes.n = 0;
    h.attr_size = attr_size + sizeof(struct pd_file_section);
    h.attrs = (struct pd_file_section){ids_at + n * 16, n * h.attr_size};
    h.data.offset = h.attrs.offset + h.attrs.size;
    file_add(f, &h, sizeof(h));
    for (size_t i = 0; i < n; i++) {
        const uint64_t ids[2] = {10 * (i + 1), 10 * (i + 1) + 1};

        file_add(f, ids, sizeof(ids));
    }
    for (size_t i = 0; i < n; i++) {
        const struct pd_file_section ids = {ids_at + i * 16, 16};

        add_attr(f, sample_types[i], sample_id_all, attr_size);
        file_add(f, &ids, sizeof(ids));
    }
}

void hand_end(struct file *f)
{
    struct pd_file_header h;

    memcpy(&h, f->bytes.at, sizeof(h));
    h.data.size = f->bytes.n - h.data.offset;
    memcpy(f->bytes.at, &h, sizeof(h));
}

void hand_compressed(struct file *f, ZSTD_CStream *stream, uint32_t type, const void *data, size_t n)
{
    const size_t head =
        type == PD_RECORD_COMPRESSED2 ? sizeof(struct pd_compressed2) : sizeof(struct perf_event_header);
    struct perf_event_header header = {.type = type};
    char packed[32768];
    ZSTD_inBuffer in = {data, n, 0};
    ZSTD_outBuffer out = {packed, sizeof(packed), 0};
    uint64_t size;

    assert_int_equal(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush), 0);
    size = out.pos;
    if (type == PD_RECORD_COMPRESSED2)
        while (out.pos % 8)
            packed[out.pos++] = 0;
    header.size = (uint16_t)(head + out.pos);
    file_add(f, &header, sizeof(header));
    if (type == PD_RECORD_COMPRESSED2)
        file_add(f, &size, sizeof(size));
    file_add(f, packed, out.pos);
}

static int collect(void *ctx, const struct pd_record *record, struct st_error *err)
{
    struct walked *walked = ctx;

    (void)err;
    return st_vec_push(&walked->records, *record);
}

void walk_again(struct walked *walked)
{
    walked->records.n = 0;
    walked->rc = pd_reader_each(walked->reader, collect, walked, &walked->err);
}

void walk_path(const char *path, struct walked *walked)
{
    memset(walked, 0, sizeof(*walked));
    walked->rc = pd_reader_open(path, &walked->reader, &walked->err);
    if (!walked->rc)
        walk_again(walked);
}

void hand_walk(void **state, const struct file *f, struct walked *walked)
{
    const char *path = scratch_path(state, "hand.data");

    file_write(path, f->bytes.at, f->bytes.n);
    walk_path(path, walked);
}

void walked_free(struct walked *walked)
{
    pd_reader_close(walked->reader);
    st_vec_free(&walked->records);
}
