/* Forms of a perf.data that perf writes and our writer does not, and the ways from a record to its event. */
#include "hand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const uint64_t usual_type = SAMPLE_TYPE;

static void assert_walked(const struct walked *walked, size_t n)
{
    if (walked->rc)
        print_error("%s\n", walked->err.text);
    assert_int_equal(walked->rc, 0);
    assert_int_equal(walked->records.n, n);
}

static void add_made(struct file *f, const struct made *m)
{
    file_add(f, m, m->header.size);
}

static void add_mmap2(struct file *f, uint64_t time, uint64_t id)
{
    struct made m;

    made_mmap2(&m, 0x1000, "/bin/a", time, id);
    add_made(f, &m);
}

/* pipe mode: a header of 16 bytes, then attributes and features as records; strings make records of odd
 * sizes. */
static void add_pipe_attr(struct file *f, uint64_t id)
{
    struct perf_event_attr attr = {.size = sizeof(attr), .sample_type = usual_type, .sample_id_all = 1};
    struct perf_event_header header = {.type = PD_RECORD_HEADER_ATTR,
                                       .size = sizeof(header) + sizeof(attr) + sizeof(id)};

    file_add(f, &header, sizeof(header));
    file_add(f, &attr, sizeof(attr));
    file_add(f, &id, sizeof(id));
}

static void add_pipe_hostname(struct file *f, const char *name)
{
    struct pd_header_feature feature = {.header = {.type = PD_RECORD_HEADER_FEATURE},
                                        .feature = PD_FEAT_HOSTNAME};
    const uint32_t room = 64;
    char text[64] = {0};

    strcpy(text, name);
    feature.header.size = sizeof(feature) + sizeof(room) + sizeof(text);
    file_add(f, &feature, sizeof(feature));
    file_add(f, &room, sizeof(room));
    file_add(f, text, sizeof(text));
}

static void add_pipe_name(struct file *f, uint64_t id, const char *name)
{
    struct made m;

    made_start(&m, PD_RECORD_EVENT_UPDATE, 0);
    made_u64(&m, PD_UPDATE_NAME);
    made_u64(&m, id);
    made_string(&m, name);
    add_made(f, &m);
}

static void add_pipe_build_id(struct file *f, const char *name)
{
    struct pd_build_id_entry entry = {
        .header = {.type = PD_RECORD_HEADER_BUILD_ID, .misc = PERF_RECORD_MISC_USER}, .pid = -1};

    entry.header.size = (uint16_t)(sizeof(entry) + strlen(name) + 1);
    memset(entry.id, 0x5a, sizeof(entry.id));
    file_add(f, &entry, sizeof(entry));
    file_add(f, name, strlen(name) + 1);
}

static void add_tracing_data(struct file *f, uint32_t size)
{
    struct pd_tracing_data tracing = {
        .header = {.type = PD_RECORD_HEADER_TRACING_DATA, .size = sizeof(tracing)}, .size = size};
    const uint8_t byte = 0xff;

    file_add(f, &tracing, sizeof(tracing));
    for (uint32_t i = 0; i < size; i++)
        file_add(f, &byte, 1);
}

static int first_build_id(void *ctx, const struct pd_build_id *id)
{
    *(struct pd_build_id *)ctx = *id;
    return 0;
}

static void pipe_mode_has_its_header_in_records(void **state)
{
    const struct pd_pipe_header header = {PD_MAGIC, sizeof(header)};
    struct pd_build_id id = {0};
    struct walked w;
    struct file f = {0};

    file_add(&f, &header, sizeof(header));
    add_pipe_attr(&f, 10);
    add_pipe_attr(&f, 20);
    add_pipe_hostname(&f, "far away");
    add_pipe_name(&f, 20, "second");
    add_tracing_data(&f, 24);
    add_mmap2(&f, 5, 20);
    add_pipe_build_id(&f, "/bin/a");
    add_mmap2(&f, 6, 10);
    hand_walk(state, &f, &w);
    assert_walked(&w, 8);
    assert_int_equal(pd_reader_nevents(w.reader), 2);
    assert_string_equal(pd_reader_event(w.reader, 0)->name, "");
    assert_string_equal(pd_reader_event(w.reader, 1)->name, "second");
    assert_string_equal(pd_reader_string(w.reader, PD_FEAT_HOSTNAME), "far away");
    assert_int_equal(w.records.at[5].id.time, 5);
    assert_int_equal(w.records.at[5].event->index, 1);
    assert_null(w.records.at[4].aux);
    assert_int_equal(w.records.at[7].id.time, 6);
    assert_int_equal(w.records.at[7].event->index, 0);
    assert_int_equal((uintptr_t)w.records.at[7].header % 8, 0);
    assert_int_not_equal(w.records.at[7].offset % 8, 0);
    assert_int_equal(pd_reader_build_ids(w.reader, first_build_id, &id, NULL), 0);
    assert_string_equal(id.filename, "/bin/a");
    assert_int_equal(id.id_size, 20);
    assert_int_equal(id.id[19], 0x5a);
    walked_free(&w);
    st_vec_free(&f.bytes);
}

/* Records cut anywhere by the compressed ones around them, whose sizes are odd; then a plain one. */
static void check_compressed(void **state, uint32_t type, size_t piece)
{
    ZSTD_CStream *stream = ZSTD_createCStream();
    struct file f = {0}, plain = {0};
    struct walked w;

    for (uint64_t i = 0; i < 20; i++)
        add_mmap2(&plain, 100 + i, i % 2 ? 10 : 20);
    hand_file(&f, (const uint64_t[]){usual_type, usual_type}, 2, true, sizeof(struct perf_event_attr));
    for (size_t at = 0; at < plain.bytes.n; at += piece)
        hand_compressed(&f, stream, type, plain.bytes.at + at,
                        plain.bytes.n - at < piece ? plain.bytes.n - at : piece);
    add_mmap2(&f, 999, 10);
    hand_end(&f);
    hand_walk(state, &f, &w);
    assert_walked(&w, 21);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(w.records.at[i].id.time, 100 + i);
        assert_int_equal(w.records.at[i].event->index, i % 2 ? 0 : 1);
        assert_int_equal((uintptr_t)w.records.at[i].header % 8, 0);
    }
    assert_int_equal(w.records.at[20].id.time, 999);
    walked_free(&w);
    st_vec_free(&f.bytes);
    st_vec_free(&plain.bytes);
    ZSTD_freeCStream(stream);
}

static void compressed_records_are_one_stream(void **state)
{
    static const size_t pieces[] = {1, 7, 8, 100, 104, 105, 4096};

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        check_compressed(state, PD_RECORD_COMPRESSED, pieces[i]);
        check_compressed(state, PD_RECORD_COMPRESSED2, pieces[i]);
    }
}

/* The second walk gives the same records, at the same addresses. */
static void compressed_records_are_opened_once(void **state)
{
    ZSTD_CStream *stream = ZSTD_createCStream();
    const struct perf_event_header *first[3];
    struct file f = {0}, plain = {0};
    struct walked w;

    add_mmap2(&plain, 1, 10);
    add_mmap2(&plain, 2, 10);
    hand_file(&f, &usual_type, 1, true, sizeof(struct perf_event_attr));
    hand_compressed(&f, stream, PD_RECORD_COMPRESSED, plain.bytes.at, plain.bytes.n);
    add_mmap2(&f, 3, 10);
    hand_end(&f);
    hand_walk(state, &f, &w);
    assert_walked(&w, 3);
    for (size_t i = 0; i < 3; i++)
        first[i] = w.records.at[i].header;
    for (int again = 0; again < 3; again++) {
        walk_again(&w);
        assert_walked(&w, 3);
        for (size_t i = 0; i < 3; i++)
            assert_ptr_equal(w.records.at[i].header, first[i]);
    }
    walked_free(&w);
    st_vec_free(&f.bytes);
    st_vec_free(&plain.bytes);
    ZSTD_freeCStream(stream);
}

static void add_thread_file(void **state, const char *name, uint64_t time)
{
    struct file f = {0};

    add_mmap2(&f, time, 10);
    add_mmap2(&f, time + 1, 10);
    file_write(scratch_path(state, name), f.bytes.at, f.bytes.n);
    st_vec_free(&f.bytes);
}

/* data, then data.N by number; data.old and others are not of it. */
static void directory_form_has_a_file_a_thread(void **state)
{
    static const uint64_t times[] = {1, 100, 101, 200, 201, 1000, 1001};
    struct file f = {0};
    struct walked w;

    assert_int_equal(mkdir(scratch_path(state, "t.data"), 0700), 0);
    hand_file(&f, &usual_type, 1, true, sizeof(struct perf_event_attr));
    add_mmap2(&f, 1, 10);
    hand_end(&f);
    file_write(scratch_path(state, "t.data/data"), f.bytes.at, f.bytes.n);
    add_thread_file(state, "t.data/data.10", 1000);
    add_thread_file(state, "t.data/data.2", 200);
    add_thread_file(state, "t.data/data.1", 100);
    add_thread_file(state, "t.data/data.old", 5000);
    add_thread_file(state, "t.data/data.1x", 6000);
    file_write(scratch_path(state, "t.data/data.3"), "", 0);
    walk_path(scratch_path(state, "t.data"), &w);
    assert_walked(&w, 7);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(w.records.at[i].id.time, times[i]);
    assert_string_equal(w.records.at[6].file, scratch_path(state, "t.data/data.10"));
    assert_int_equal(w.records.at[6].offset, w.records.at[5].header->size);
    assert_null(pd_reader_kcore_dir(w.reader));
    walked_free(&w);
    st_vec_free(&f.bytes);
}

/* One of the files is broken: the others are read all the same. */
static void a_broken_thread_file_spoils_no_other(void **state)
{
    struct file f = {0};
    struct walked w;

    assert_int_equal(mkdir(scratch_path(state, "t.data"), 0700), 0);
    hand_file(&f, &usual_type, 1, true, sizeof(struct perf_event_attr));
    add_mmap2(&f, 1, 10);
    hand_end(&f);
    file_write(scratch_path(state, "t.data/data"), f.bytes.at, f.bytes.n);
    file_write(scratch_path(state, "t.data/data.0"), "\3\0\0\0\0\0\7\0", 8);
    add_thread_file(state, "t.data/data.1", 100);
    file_write(scratch_path(state, "t.data/data.2"), "abc", 3);
    walk_path(scratch_path(state, "t.data"), &w);
    assert_int_equal(w.rc, ST_EBADFILE);
    assert_int_equal(w.records.n, 3);
    assert_non_null(strstr(w.err.text, "data.0: at offset 0x0: COMM (3): "));
    walked_free(&w);
    st_vec_free(&f.bytes);
}

static void a_folder_without_data_is_told(void **state)
{
    struct walked w;

    walk_path(*state, &w);
    assert_int_equal(w.rc, ST_EBADFILE);
    assert_non_null(strstr(w.err.text, "it holds no file 'data'"));
    walked_free(&w);
}

static void add_switch(struct file *f, const uint64_t *trailer, size_t n)
{
    struct made m;

    made_start(&m, PERF_RECORD_SWITCH, 0);
    for (size_t i = 0; i < n; i++)
        made_u64(&m, trailer[i]);
    add_made(f, &m);
}

static void add_sample(struct file *f, const uint64_t *words, size_t n)
{
    struct made m;

    made_start(&m, PERF_RECORD_SAMPLE, 0);
    for (size_t i = 0; i < n; i++)
        made_u64(&m, words[i]);
    add_made(f, &m);
}

/* Without IDENTIFIER the id is where the fields before it leave it: in a sample after IP, TID, TIME and ADDR,
 * in another record before STREAM_ID and CPU. */
static void ids_without_identifier(void **state)
{
    const uint64_t type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
                          PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
    struct file f = {0};
    struct walked w;
    struct pd_sample s;

    hand_file(&f, (const uint64_t[]){type, type}, 2, true, sizeof(struct perf_event_attr));
    add_sample(&f, (const uint64_t[]){0xabc, 7ull << 32 | 6, 50, 0xdef, 21, 99, 3, 8}, 8);
    add_switch(&f, (const uint64_t[]){7ull << 32 | 6, 51, 11, 99, 3}, 5);
    hand_end(&f);
    hand_walk(state, &f, &w);
    assert_walked(&w, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(w.records.at[i].event->index, i == 0);
        assert_int_equal(w.records.at[i].id.pid, 6);
        assert_int_equal(w.records.at[i].id.tid, 7);
        assert_int_equal(w.records.at[i].id.time, 50 + i);
        assert_int_equal(w.records.at[i].id.cpu, 3);
        assert_int_equal(w.records.at[i].id.id, i ? 11 : 21);
    }
    assert_int_equal(pd_record_sample(&w.records.at[0], &s, NULL), 0);
    assert_int_equal(s.ip, 0xabc);
    assert_int_equal(s.addr, 0xdef);
    assert_int_equal(s.period, 8);
    assert_int_equal(pd_record_sample(&w.records.at[1], &s, &w.err), ST_EBADFILE);
    walked_free(&w);
    st_vec_free(&f.bytes);
}

static void one_event_needs_no_ids(void **state)
{
    const uint64_t type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
    struct file f = {0};
    struct walked w;

    hand_file(&f, &type, 1, true, sizeof(struct perf_event_attr));
    add_sample(&f, (const uint64_t[]){0xabc, 50}, 2);
    add_switch(&f, (const uint64_t[]){51}, 1);
    hand_end(&f);
    hand_walk(state, &f, &w);
    assert_walked(&w, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(w.records.at[i].event->index, 0);
        assert_int_equal(w.records.at[i].id.has, PERF_SAMPLE_TIME);
        assert_int_equal(w.records.at[i].id.time, 50 + i);
    }
    walked_free(&w);
    st_vec_free(&f.bytes);
}

/* perf's own records carry the id 0; a record whose id is nobody's is of no event. */
static void ids_that_are_no_events(void **state)
{
    struct file f = {0};
    struct walked w;
    struct pd_sample s;

    hand_file(&f, (const uint64_t[]){usual_type, usual_type}, 2, true, sizeof(struct perf_event_attr));
    add_mmap2(&f, 0, 0);
    add_mmap2(&f, 5, 77);
    add_sample(&f, (const uint64_t[]){77, 0, 0, 0, 0}, 5);
    hand_end(&f);
    hand_walk(state, &f, &w);
    assert_walked(&w, 3);
    assert_int_equal(w.records.at[0].event->index, 0);
    assert_int_equal(w.records.at[0].id.time, 0);
    assert_null(w.records.at[1].event);
    assert_int_equal(w.records.at[1].id.has, 0);
    assert_null(w.records.at[2].event);
    assert_int_equal(pd_record_sample(&w.records.at[2], &s, &w.err), ST_EBADFILE);
    assert_non_null(strstr(w.err.text, "SAMPLE (9): it is of no event"));
    walked_free(&w);
    st_vec_free(&f.bytes);
}

static void without_sample_id_all_records_are_of_the_first_event(void **state)
{
    struct file f = {0};
    struct walked w;

    hand_file(&f, (const uint64_t[]){usual_type, usual_type}, 2, false, sizeof(struct perf_event_attr));
    add_switch(&f, NULL, 0);
    add_sample(&f, (const uint64_t[]){20, 0xabc, 7ull << 32 | 6, 50, 1}, 5);
    hand_end(&f);
    hand_walk(state, &f, &w);
    assert_walked(&w, 2);
    assert_int_equal(w.records.at[0].event->index, 0);
    assert_int_equal(w.records.at[0].id.has, 0);
    assert_int_equal(w.records.at[1].event->index, 1);
    assert_int_equal(w.records.at[1].id.time, 50);
    walked_free(&w);
    st_vec_free(&f.bytes);
}

static void events_that_cannot_be_told_apart(void **state)
{
    const uint64_t without = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
    struct file f = {0};
    struct walked w;

    hand_file(&f, (const uint64_t[]){without, without}, 2, true, sizeof(struct perf_event_attr));
    hand_end(&f);
    hand_walk(state, &f, &w);
    assert_int_equal(w.rc, ST_EBADFILE);
    assert_non_null(strstr(w.err.text, "event 0 (sample_type 0x3) keeps no id"));
    walked_free(&w);
    hand_file(&f, (const uint64_t[]){usual_type, PERF_SAMPLE_ID | PERF_SAMPLE_IP}, 2, true,
              sizeof(struct perf_event_attr));
    hand_end(&f);
    hand_walk(state, &f, &w);
    assert_int_equal(w.rc, ST_EBADFILE);
    assert_non_null(strstr(w.err.text, "event 1 (sample_type 0x41) does not keep its id where event 0"));
    walked_free(&w);
    st_vec_free(&f.bytes);
}

/* Attributes of an older kernel and of one to come. */
static void attributes_of_other_sizes(void **state)
{
    static const size_t sizes[] = {PERF_ATTR_SIZE_VER0, 72, sizeof(struct perf_event_attr) + 40};
    struct file f = {0};
    struct walked w;

    for (size_t i = 0; i < 3; i++) {
        struct perf_event_attr want = {
            .type = PERF_TYPE_SOFTWARE, .size = (uint32_t)sizes[i], .sample_type = usual_type};

        want.sample_id_all = 1;
        hand_file(&f, (const uint64_t[]){usual_type, usual_type}, 2, true, sizes[i]);
        add_mmap2(&f, 5, 20);
        hand_end(&f);
        hand_walk(state, &f, &w);
        assert_walked(&w, 1);
        assert_memory_equal(&pd_reader_event(w.reader, 1)->attr, &want, sizeof(want));
        assert_int_equal(w.records.at[0].event->index, 1);
        walked_free(&w);
    }
    st_vec_free(&f.bytes);
}

/* The recording was killed: its records are there, its header says nothing of them. */
static void a_recording_that_was_killed(void **state)
{
    struct file f = {0};
    struct walked w;

    hand_file(&f, &usual_type, 1, true, sizeof(struct perf_event_attr));
    add_mmap2(&f, 1, 10);
    add_mmap2(&f, 2, 10);
    hand_walk(state, &f, &w);
    assert_int_equal(w.rc, ST_EBADFILE);
    assert_int_equal(w.records.n, 2);
    assert_non_null(strstr(w.err.text, "never finished"));
    walked_free(&w);
    st_vec_free(&f.bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pipe_mode_has_its_header_in_records),
        TEST(compressed_records_are_one_stream),
        TEST(compressed_records_are_opened_once),
        TEST(directory_form_has_a_file_a_thread),
        TEST(a_broken_thread_file_spoils_no_other),
        TEST(a_folder_without_data_is_told),
        TEST(ids_without_identifier),
        TEST(one_event_needs_no_ids),
        TEST(ids_that_are_no_events),
        TEST(without_sample_id_all_records_are_of_the_first_event),
        TEST(events_that_cannot_be_told_apart),
        TEST(attributes_of_other_sizes),
        TEST(a_recording_that_was_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
