/* Files that are cut, corrupted or something else: each has its message, nothing crashes. */
#include "hand.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static int take(void *ctx, const struct pd_record *record, struct st_error *err)
{
    struct walked *walked = ctx;
    struct pd_sample s;

    if (record->event && record->header->type == PERF_RECORD_SAMPLE && pd_record_sample(record, &s, err))
        return ST_EBADFILE;
    return st_vec_push(&walked->records, *record);
}

static int take_build_id(void *ctx, const struct pd_build_id *id)
{
    *(size_t *)ctx += strlen(id->filename);
    return 0;
}

static int memory_file(const void *bytes, size_t n)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    assert_int_not_equal(fd, -1);
    assert_int_equal(write(fd, bytes, n), n);
    return fd;
}

/* Reads all that can be read of bytes in memory. */
static int read_all(const void *bytes, size_t n, struct walked *walked)
{
    int fd = memory_file(bytes, n);
    size_t total = 0;

    memset(walked, 0, sizeof(*walked));
    walked->rc = pd_reader_open_fd(fd, "x.data", &walked->reader, &walked->err);
    close(fd);
    if (walked->rc)
        return walked->rc;
    for (enum pd_feature f = 0; f < PD_FEAT_BITS; f++) {
        const char *text = pd_reader_string(walked->reader, f);

        total += text ? strlen(text) : 0;
    }
    (void)pd_reader_build_ids(walked->reader, take_build_id, &total, NULL);
    walked->rc = pd_reader_each(walked->reader, take, walked, &walked->err);
    return walked->rc;
}

static void make_recording(void **state, struct file *f)
{
    const char *path = scratch_path(state, "a.data");
    struct st_error err = {0};

    if (recording_write(path, false, &err))
        fail_msg("%s", err.text);
    file_read(f, path);
}

/* Where the records of the recording begin, and its data end. */
struct layout {
    uint64_t start[NRECORDS + 1];

    uint32_t type[NRECORDS];

    uint16_t size[NRECORDS];
};

static void lay_out(const struct file *f, struct layout *l)
{
    struct pd_file_header h;
    struct walked w;

    memcpy(&h, f->bytes.at, sizeof(h));
    assert_int_equal(read_all(f->bytes.at, f->bytes.n, &w), 0);
    assert_int_equal(w.records.n, NRECORDS);
    for (size_t i = 0; i < NRECORDS; i++) {
        l->start[i] = w.records.at[i].offset;
        l->type[i] = w.records.at[i].header->type;
        l->size[i] = w.records.at[i].header->size;
    }
    l->start[NRECORDS] = h.data.offset + h.data.size;
    walked_free(&w);
}

static size_t records_before(const struct layout *l, uint64_t length)
{
    size_t n = 0;

    while (n < NRECORDS && l->start[n + 1] <= length)
        n++;
    return n;
}

/* What the message of a file of `length` bytes must say. */
static void expect_place(const struct layout *l, const struct walked *w, uint64_t length)
{
    size_t n = records_before(l, length);
    char place[128];

    snprintf(place, sizeof(place), "x.data: at offset 0x%" PRIx64 ": ", n < NRECORDS ? l->start[n] : length);
    if (n < NRECORDS && length - l->start[n] >= sizeof(struct perf_event_header))
        snprintf(place + strlen(place), sizeof(place) - strlen(place),
                 "%s (%u): ", pd_record_name(l->type[n]), l->type[n]);
    if (n < NRECORDS && !strstr(w->err.text, place))
        fail_msg("%" PRIu64 " bytes: '%s' does not say '%s'", length, w->err.text, place);
    if (!strstr(w->err.text, "the file ends") && !strstr(w->err.text, "beyond the end of the file"))
        fail_msg("%" PRIu64 " bytes: '%s' does not say that the file was cut", length, w->err.text);
}

static void a_file_cut_at_any_length(void **state)
{
    struct file f = {0};
    struct layout l;
    struct pd_file_header h;

    make_recording(state, &f);
    lay_out(&f, &l);
    memcpy(&h, f.bytes.at, sizeof(h));
    for (size_t n = 0; n < f.bytes.n; n++) {
        struct walked w;

        assert_int_equal(read_all(f.bytes.at, n, &w), ST_EBADFILE);
        assert_non_null(strstr(w.err.text, "x.data: "));
        assert_int_equal(w.records.n, n < h.data.offset ? 0 : records_before(&l, n));
        if (n >= h.data.offset)
            expect_place(&l, &w, n);
        else
            assert_null(w.reader);
        walked_free(&w);
    }
    st_vec_free(&f.bytes);
}

static void a_pipe_recording_cut_at_any_length(void **state)
{
    const struct pd_pipe_header header = {PD_MAGIC, sizeof(header)};
    struct {
        struct perf_event_header header;

        struct perf_event_attr attr;

        uint64_t id;
    } attr = {{PD_RECORD_HEADER_ATTR, 0, sizeof(attr)}, {.size = sizeof(attr.attr)}, 10};
    struct file f = {0};
    size_t bounds[5], at = 0;
    struct made m;

    (void)state;
    attr.attr.sample_type = SAMPLE_TYPE;
    attr.attr.sample_id_all = 1;
    file_add(&f, &header, sizeof(header));
    bounds[0] = f.bytes.n;
    file_add(&f, &attr, sizeof(attr));
    for (size_t i = 1; i < 4; i++) {
        bounds[i] = f.bytes.n;
        made_mmap2(&m, 0, "/bin/a", i, 10);
        file_add(&f, &m, m.header.size);
    }
    bounds[4] = f.bytes.n;
    for (size_t n = 0; n <= f.bytes.n; n++) {
        struct walked w;
        bool whole;

        while (at < 4 && bounds[at + 1] <= n)
            at++;
        whole = n == bounds[at];
        assert_int_equal(read_all(f.bytes.at, n, &w), whole ? 0 : ST_EBADFILE);
        assert_int_equal(w.records.n, n < bounds[0] ? 0 : at);
        assert_int_equal(w.err.text[0] == '\0', whole);
        walked_free(&w);
    }
    st_vec_free(&f.bytes);
}

/* Sizes that show at once: the message has the place and the name of the record. */
static void one_wrong_size_is_told(void **state)
{
    static const uint16_t wrong[] = {0, 1, 7, 9, 12, 0xfff8, 0xffff};
    struct file f = {0};
    struct layout l;

    make_recording(state, &f);
    lay_out(&f, &l);
    for (size_t i = 0; i < NRECORDS; i++)
        for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
            struct walked w;
            char place[128];

            memcpy(f.bytes.at + l.start[i] + 6, &wrong[k], 2);
            assert_int_equal(read_all(f.bytes.at, f.bytes.n, &w), ST_EBADFILE);
            snprintf(place, sizeof(place), "x.data: at offset 0x%" PRIx64 ": %s (%u): ", l.start[i],
                     pd_record_name(l.type[i]), l.type[i]);
            if (strncmp(w.err.text, place, strlen(place)))
                fail_msg("size %u: '%s' does not begin with '%s'", wrong[k], w.err.text, place);
            assert_int_equal(w.records.n, i);
            walked_free(&w);
            memcpy(f.bytes.at + l.start[i] + 6, &l.size[i], 2);
        }
    st_vec_free(&f.bytes);
}

/* Such a size swallows whole records: the file is a good one then. */
static bool ends_a_record(const struct layout *l, uint64_t at)
{
    for (size_t i = 0; i <= NRECORDS; i++)
        if (l->start[i] == at)
            return true;
    return false;
}

/* Sizes that are possible: too small or too large by some words. The record is told, or the one behind it
 * with a word of this. */
static void a_plausible_wrong_size_is_told(void **state)
{
    static const int off[] = {-16, -8, 8, 16, 24, 32, 64};
    struct file f = {0};
    struct layout l;

    make_recording(state, &f);
    lay_out(&f, &l);
    for (size_t i = 0; i < NRECORDS; i++)
        for (size_t k = 0; k < sizeof(off) / sizeof(off[0]); k++) {
            const uint16_t size = (uint16_t)(l.size[i] + off[k]);
            struct walked w;
            char place[64], name[64];

            if (l.start[i] + size > l.start[NRECORDS] || ends_a_record(&l, l.start[i] + size))
                continue;
            memcpy(f.bytes.at + l.start[i] + 6, &size, 2);
            if (read_all(f.bytes.at, f.bytes.n, &w) != ST_EBADFILE)
                fail_msg("size %u for %u of %s is not told", size, l.size[i], pd_record_name(l.type[i]));
            snprintf(place, sizeof(place), "at offset 0x%" PRIx64 ": ", l.start[i]);
            snprintf(name, sizeof(name), "%s (%u)", pd_record_name(l.type[i]), l.type[i]);
            if (!strstr(w.err.text, place) || !strstr(w.err.text, name))
                fail_msg("size %u for %u: '%s' does not say '%s%s'", size, l.size[i], w.err.text, place,
                         name);
            walked_free(&w);
            memcpy(f.bytes.at + l.start[i] + 6, &l.size[i], 2);
        }
    st_vec_free(&f.bytes);
}

/* Every byte of the file in turn becomes 0, 0xff and its opposite: whatever comes of it, it ends, and a
 * failure has words. */
static void any_byte_may_be_wrong(void **state)
{
    struct file f = {0};

    make_recording(state, &f);
    for (size_t i = 0; i < f.bytes.n; i++) {
        const uint8_t good = f.bytes.at[i];
        const uint8_t wrong[] = {0, 0xff, (uint8_t)~good, good ^ 1, good ^ 0x80};

        for (size_t k = 0; k < sizeof(wrong); k++) {
            struct walked w;

            f.bytes.at[i] = wrong[k];
            if (read_all(f.bytes.at, f.bytes.n, &w)) {
                assert_int_equal(w.rc, ST_EBADFILE);
                assert_non_null(strstr(w.err.text, "x.data: "));
            }
            walked_free(&w);
        }
        f.bytes.at[i] = good;
    }
    st_vec_free(&f.bytes);
}

/* 8 bytes at `at` become `value`. */
static void expect_told(const struct file *f, size_t at, uint64_t value, const char *words)
{
    struct file copy = {0};
    struct walked w;

    file_add(&copy, f->bytes.at, f->bytes.n);
    memcpy(copy.bytes.at + at, &value, sizeof(value));
    assert_int_equal(read_all(copy.bytes.at, copy.bytes.n, &w), ST_EBADFILE);
    if (!strstr(w.err.text, words))
        fail_msg("0x%" PRIx64 " at 0x%zx: '%s' does not say '%s'", value, at, w.err.text, words);
    walked_free(&w);
    st_vec_free(&copy.bytes);
}

#define FIELD(name) offsetof(struct pd_file_header, name)

static void wrong_headers_are_told(void **state)
{
    struct pd_file_header h;
    struct file f = {0};

    make_recording(state, &f);
    memcpy(&h, f.bytes.at, sizeof(h));
    expect_told(&f, 0, 0x32454c4946524550 /* 2ELIFREP, swapped */ + 1, "it is no perf.data");
    expect_told(&f, 0, 0x50455246494c4532, "other byte order");
    expect_told(&f, 0, 0x454c494646524550, "before 2010");
    expect_told(&f, FIELD(size), 0, "x.data: at offset 0x8: a header of 0 bytes cannot be");
    expect_told(&f, FIELD(size), 105, "a header of 105 bytes cannot be");
    expect_told(&f, FIELD(attr_size), 0, "x.data: at offset 0x10: attributes of 0 bytes");
    expect_told(&f, FIELD(attr_size), UINT64_MAX, "attributes of 18446744073709551615 bytes");
    expect_told(&f, FIELD(attr_size), h.attr_size + 8, "are no multiple");
    expect_told(&f, FIELD(attrs.offset), f.bytes.n, "x.data: at offset 0x18: the attributes");
    expect_told(&f, FIELD(attrs.offset), UINT64_MAX, "beyond the end of the file");
    expect_told(&f, FIELD(attrs.size), UINT64_MAX, "beyond the end of the file");
    expect_told(&f, FIELD(data.offset), f.bytes.n + 1, "x.data: at offset 0x28: the data begin at");
    expect_told(&f, FIELD(data.offset), 0, "the data begin at 0x0");
    expect_told(&f, FIELD(data.size), UINT64_MAX, "the data cannot have a size of");
    /* The first attribute: its size, and the place of its ids behind it. */
    expect_told(&f, h.attrs.offset, (uint64_t)7 << 32 | PT_TYPE,
                "attribute 0: its size field 7 is not within 64 to ");
    expect_told(&f, h.attrs.offset, (uint64_t)5000 << 32 | PT_TYPE,
                "attribute 0: its size field 5000 is not within 64 to ");
    expect_told(&f, h.attrs.offset + h.attr_size - 16, f.bytes.n, "attribute 0: its ids (16 bytes at ");
    expect_told(&f, h.attrs.offset + h.attr_size - 8, 12, "attribute 0: 12 bytes of ids cannot be");
    st_vec_free(&f.bytes);
}

/* Many attributes that all point to the same large list of ids would need memory that the file has no bytes
 * for. */
static void ids_cannot_be_more_than_the_file(void **state)
{
    struct pd_file_header h;
    struct file f = {0};

    make_recording(state, &f);
    memcpy(&h, f.bytes.at, sizeof(h));
    for (int i = 0; i < 3; i++) {
        const struct pd_file_section all = {0, f.bytes.n / 8 * 8};

        memcpy(f.bytes.at + h.attrs.offset + (size_t)(i + 1) * h.attr_size - sizeof(all), &all, sizeof(all));
    }
    expect_told(&f, 0, 0x32454c4946524550, "attribute 1: ");
    st_vec_free(&f.bytes);
}

static void other_files_are_told(void **state)
{
    static const char text[] = "#!/bin/sh\necho this is no recording at all, whatever its name may say\n";
    struct walked w;

    assert_int_equal(read_all(text, sizeof(text), &w), ST_EBADFILE);
    assert_string_equal(w.err.text,
                        "x.data: at offset 0x0: it is no perf.data (it does not begin with PERFILE2)");
    assert_null(w.reader);
    assert_int_equal(read_all("", 0, &w), ST_EBADFILE);
    assert_non_null(strstr(w.err.text, "x.data: it is no perf.data: 0 bytes are too few"));
    walk_path(scratch_path(state, "none.data"), &w);
    assert_int_equal(w.rc, ST_EFAIL);
    assert_non_null(strstr(w.err.text, "none.data': No such file or directory"));
    walk_path("/dev/null", &w);
    assert_int_equal(w.rc, ST_EFAIL);
    assert_non_null(strstr(w.err.text, "it is neither a file nor a pipe"));
}

/* Records that have the right size and do not hold what they say. */
static void expect_bad_record(struct made *m, const char *words)
{
    const uint64_t type = SAMPLE_TYPE;
    struct file f = {0};
    struct walked w;

    hand_file(&f, &type, 1, true, sizeof(struct perf_event_attr));
    file_add(&f, m, m->header.size);
    hand_end(&f);
    assert_int_equal(read_all(f.bytes.at, f.bytes.n, &w), ST_EBADFILE);
    if (!strstr(w.err.text, words))
        fail_msg("'%s' does not say '%s'", w.err.text, words);
    walked_free(&w);
    st_vec_free(&f.bytes);
}

static void what_is_in_a_record_is_checked(void **state)
{
    struct made m;

    (void)state;
    made_mmap2(&m, 0, "/bin/a", 1, 10);
    memset(m.bytes + 72, 'x', m.header.size - 72u);
    expect_bad_record(&m, "MMAP2 (10): its name has no end within it");
    made_start(&m, PERF_RECORD_COMM, 0);
    made_u64(&m, 1);
    expect_bad_record(&m, "COMM (3): it is too small for its fields");
    made_start(&m, PERF_RECORD_NAMESPACES, 0);
    made_u64(&m, 1);
    made_u64(&m, UINT64_MAX);
    expect_bad_record(&m, "NAMESPACES (16): it is too small for its count of namespaces");
    made_start(&m, PERF_RECORD_TEXT_POKE, 0);
    made_u64(&m, 1);
    made_u64(&m, 0x00100010);
    expect_bad_record(&m, "TEXT_POKE (20): it is too small for its code bytes");
    made_start(&m, PERF_RECORD_SAMPLE, 0);
    made_u64(&m, 10);
    expect_bad_record(&m, "SAMPLE (9): it is too small for the fields of its event");
    made_start(&m, 0, 0);
    expect_bad_record(&m, "? (0): there is no such record");
    made_start(&m, PD_RECORD_AUXTRACE, 0);
    for (int i = 0; i < 5; i++)
        made_u64(&m, 1 << 20);
    expect_bad_record(&m, "AUXTRACE (71): the file ends within its trace (0 of 1048576 bytes are there)");
    made_start(&m, PD_RECORD_COMPRESSED, 0);
    made_u64(&m, 0x1234567812345678);
    expect_bad_record(&m, "COMPRESSED (81): zstd says: ");
}

/* Behind hand_end(): the feature COMPRESSED, which says how much comes out of a record at most. */
static void add_compressed_feature(struct file *f, uint32_t type, uint32_t mmap_len)
{
    const struct pd_compressed_feature feature = {1, type, 1, 1, mmap_len};
    const struct pd_file_section place = {f->bytes.n + sizeof(place), sizeof(feature)};
    const uint64_t bits = 1ull << PD_FEAT_COMPRESSED;

    memcpy(f->bytes.at + FIELD(features), &bits, sizeof(bits));
    file_add(f, &place, sizeof(place));
    file_add(f, &feature, sizeof(feature));
}

/* Eight megabytes of records in a compressed one of some hundred bytes. */
static void make_bomb(struct file *f, uint32_t type, uint32_t mmap_len)
{
    const uint64_t sample_type = SAMPLE_TYPE;
    ZSTD_CStream *stream = ZSTD_createCStream();
    struct perf_event_header *many = calloc(1 << 20, sizeof(*many));

    assert_non_null(many);
    for (size_t i = 0; i < 1 << 20; i++)
        many[i] = (struct perf_event_header){.type = PD_RECORD_FINISHED_ROUND, .size = 8};
    hand_file(f, &sample_type, 1, true, sizeof(struct perf_event_attr));
    hand_compressed(f, stream, PD_RECORD_COMPRESSED, many, sizeof(*many) << 20);
    hand_end(f);
    add_compressed_feature(f, type, mmap_len);
    free(many);
    ZSTD_freeCStream(stream);
}

static void no_more_comes_out_than_the_header_says(void **state)
{
    struct file f = {0};
    struct walked w;

    (void)state;
    make_bomb(&f, PD_COMPRESSION_ZSTD, 8 << 20);
    assert_int_equal(read_all(f.bytes.at, f.bytes.n, &w), 0);
    assert_int_equal(w.records.n, 1 << 20);
    walked_free(&w);
    make_bomb(&f, PD_COMPRESSION_ZSTD, (8 << 20) - 1);
    assert_int_equal(read_all(f.bytes.at, f.bytes.n, &w), ST_EBADFILE);
    assert_non_null(strstr(w.err.text, "COMPRESSED (81): more than 8388607 bytes come out of it"));
    assert_int_equal(pd_reader_each(w.reader, take, &w, &w.err), ST_EBADFILE);
    assert_non_null(strstr(w.err.text, "COMPRESSED (81): "));
    walked_free(&w);
    make_bomb(&f, 2, 8 << 20);
    assert_int_equal(read_all(f.bytes.at, f.bytes.n, &w), ST_EBADFILE);
    assert_non_null(strstr(w.err.text, "only zstd (1) is known"));
    walked_free(&w);
    st_vec_free(&f.bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_cut_at_any_length),
        TEST(a_pipe_recording_cut_at_any_length),
        TEST(one_wrong_size_is_told),
        TEST(a_plausible_wrong_size_is_told),
        TEST(any_byte_may_be_wrong),
        TEST(wrong_headers_are_told),
        TEST(ids_cannot_be_more_than_the_file),
        TEST(other_files_are_told),
        TEST(what_is_in_a_record_is_checked),
        TEST(no_more_comes_out_than_the_header_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
