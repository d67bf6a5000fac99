/* What is written is what is read. */
#include "recording.h"
#include "scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* All records of a walk. */
struct list {
    ST_VEC(struct pd_record) records;
};

static int collect(void *ctx, const struct pd_record *record, struct st_error *err)
{
    struct list *list = ctx;

    (void)err;
    return st_vec_push(&list->records, *record);
}

static void walk(struct pd_reader *reader, struct list *list)
{
    struct st_error err = {0};
    int rc;

    list->records.n = 0;
    rc = pd_reader_each(reader, collect, list, &err);
    if (rc)
        print_error("%s\n", err.text);
    assert_int_equal(rc, 0);
}

static struct pd_reader *open_good(const char *path)
{
    struct pd_reader *reader = NULL;
    struct st_error err = {0};
    int rc = pd_reader_open(path, &reader, &err);

    if (rc)
        print_error("%s\n", err.text);
    assert_int_equal(rc, 0);
    return reader;
}

static void write_good(const char *path, bool directory)
{
    struct st_error err = {0};
    int rc = recording_write(path, directory, &err);

    if (rc)
        print_error("%s\n", err.text);
    assert_int_equal(rc, 0);
}

static void events_come_back(void **state)
{
    static const char *const names[] = {"intel_pt//u", "dummy:u", "stalltrap:stall"};
    static const uint64_t ids[] = {PT_ID, DUMMY_ID, STALL_ID};
    struct pd_reader *reader;

    write_good(scratch_path(state, "a.data"), false);
    reader = open_good(scratch_path(state, "a.data"));
    assert_int_equal(pd_reader_nevents(reader), 3);
    for (int i = 0; i < 3; i++) {
        const struct pd_event *event = pd_reader_event(reader, (size_t)i);
        struct perf_event_attr attr;

        recording_attr(&attr, i);
        assert_memory_equal(&event->attr, &attr, sizeof(attr));
        assert_string_equal(event->name, names[i]);
        assert_int_equal(event->nids, 2);
        assert_int_equal(event->ids[0], ids[i]);
        assert_int_equal(event->ids[1], ids[i] + 1);
        assert_int_equal(event->index, i);
    }
    assert_null(pd_reader_event(reader, 3));
    pd_reader_close(reader);
}

static void check_identity(const struct pd_record *record, uint64_t time, uint64_t id, size_t event)
{
    assert_int_equal(record->id.has, PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                                         PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID);
    assert_int_equal(record->id.time, time);
    assert_int_equal(record->id.id, id);
    assert_int_equal(record->id.pid, PID);
    assert_int_equal(record->id.tid, TID);
    assert_int_equal(record->id.cpu, 1);
    assert_non_null(record->event);
    assert_int_equal(record->event->index, event);
}

static void check_stall(const struct pd_record *record)
{
    struct st_error err = {0};
    struct pd_sample s;

    check_identity(record, T_STALL, STALL_ID, STALL_EVENT);
    assert_int_equal(pd_record_sample(record, &s, &err), 0);
    assert_int_equal(s.period, 1);
    assert_int_equal(s.raw_size, (sizeof(STALL_TEXT) - 1 + 4 + 7) / 8 * 8 - 4);
    assert_memory_equal(s.raw, STALL_TEXT, sizeof(STALL_TEXT) - 1);
    assert_null(s.callchain);
    assert_null(s.user_regs);
}

static void check_trace(const struct pd_record *record)
{
    const struct pd_auxtrace *trace = (const void *)record->header;

    assert_int_equal(trace->size, (TRACE_SIZE + 7) / 8 * 8);
    assert_int_equal(trace->offset, 0x1000);
    assert_int_equal(trace->reference, 7);
    assert_int_equal(trace->idx, 3);
    assert_int_equal(trace->tid, TID);
    assert_int_equal(trace->cpu, UINT32_MAX);
    assert_non_null(record->aux);
    assert_memory_equal(record->aux, recording_trace, TRACE_SIZE);
    for (size_t i = TRACE_SIZE; i < trace->size; i++)
        assert_int_equal(record->aux[i], 0);
}

static void check_records(const struct list *list, const char *file)
{
    static const uint32_t types[NRECORDS] = {
        PD_RECORD_AUXTRACE_INFO, PERF_RECORD_COMM,         PERF_RECORD_MMAP2,  PERF_RECORD_SAMPLE,
        PERF_RECORD_EXIT,        PERF_RECORD_ITRACE_START, PERF_RECORD_SWITCH, PD_RECORD_AUXTRACE};
    struct made mmap2;

    assert_int_equal(list->records.n, NRECORDS);
    for (size_t i = 0; i < NRECORDS; i++) {
        assert_int_equal(list->records.at[i].header->type, types[i]);
        assert_string_equal(list->records.at[i].file, file);
        assert_int_equal((uintptr_t)list->records.at[i].header % 8, 0);
    }
    assert_null(list->records.at[0].event);
    check_identity(&list->records.at[1], T_COMM, DUMMY_ID, DUMMY_EVENT);
    check_identity(&list->records.at[2], T_MMAP2, DUMMY_ID + 1, DUMMY_EVENT);
    made_mmap2(&mmap2, 0x400000, "/usr/bin/forwarder", T_MMAP2, DUMMY_ID + 1);
    assert_memory_equal(list->records.at[2].header, &mmap2, mmap2.header.size);
    check_stall(&list->records.at[3]);
    check_identity(&list->records.at[4], T_EXIT, DUMMY_ID, DUMMY_EVENT);
    check_identity(&list->records.at[5], T_ITRACE, PT_ID, PT_EVENT);
    check_identity(&list->records.at[6], T_SWITCH, DUMMY_ID, DUMMY_EVENT);
    check_trace(&list->records.at[7]);
    assert_null(list->records.at[6].aux);
}

static void records_come_back(void **state)
{
    const char *path = scratch_path(state, "a.data");
    struct list list = {0};
    struct pd_reader *reader;

    write_good(path, false);
    reader = open_good(path);
    walk(reader, &list);
    check_records(&list, path);
    walk(reader, &list);
    check_records(&list, path);
    assert_null(pd_reader_kcore_dir(reader));
    pd_reader_close(reader);
    st_vec_free(&list.records);
}

/* The offset of a record is where it stands. */
static void offsets_are_those_of_the_file(void **state)
{
    const char *path = scratch_path(state, "a.data");
    struct pd_reader *reader;
    struct list list = {0};
    struct file file = {0};

    write_good(path, false);
    file_read(&file, path);
    reader = open_good(path);
    walk(reader, &list);
    for (size_t i = 0; i < list.records.n; i++)
        assert_memory_equal(file.bytes.at + list.records.at[i].offset, list.records.at[i].header,
                            list.records.at[i].header->size);
    pd_reader_close(reader);
    st_vec_free(&list.records);
    st_vec_free(&file.bytes);
}

struct ids_seen {
    int n;
};

static int check_build_id(void *ctx, const struct pd_build_id *id)
{
    struct ids_seen *seen = ctx;

    assert_int_equal(id->pid, -1);
    assert_int_equal(id->id[0], 0xab);
    if (seen->n++ == 0) {
        assert_string_equal(id->filename, "/usr/bin/forwarder");
        assert_int_equal(id->misc, PERF_RECORD_MISC_USER);
        assert_int_equal(id->id_size, 20);
        assert_int_equal(id->id[19], 20);
        return 0;
    }
    assert_string_equal(id->filename, "[kernel.kallsyms]");
    assert_int_equal(id->misc, PERF_RECORD_MISC_KERNEL);
    assert_int_equal(id->id_size, 16);
    return 77;
}

static void features_come_back(void **state)
{
    struct ids_seen seen = {0};
    struct pd_reader *reader;
    uint64_t times[2];
    uint32_t count;
    const void *data;
    size_t size;

    write_good(scratch_path(state, "a.data"), false);
    reader = open_good(scratch_path(state, "a.data"));
    assert_string_equal(pd_reader_string(reader, PD_FEAT_HOSTNAME), "examplehost");
    assert_string_equal(pd_reader_string(reader, PD_FEAT_VERSION), "stalltrap " ST_VERSION);
    assert_non_null(pd_reader_string(reader, PD_FEAT_CPUID));
    assert_non_null(strchr(pd_reader_string(reader, PD_FEAT_CPUID), ','));
    assert_null(pd_reader_string(reader, PD_FEAT_STAT));
    assert_int_equal(pd_reader_build_ids(reader, check_build_id, &seen, NULL), 77);
    assert_int_equal(seen.n, 2);
    data = pd_reader_feature(reader, PD_FEAT_SAMPLE_TIME, &size);
    assert_int_equal(size, sizeof(times));
    memcpy(times, data, sizeof(times));
    assert_int_equal(times[0], T_COMM);
    assert_int_equal(times[1], T_EXIT);
    data = pd_reader_feature(reader, PD_FEAT_CMDLINE, &size);
    memcpy(&count, data, sizeof(count));
    assert_int_equal(count, 4);
    assert_int_equal(size, 4 + 4 * (4 + 64));
    assert_null(pd_reader_feature(reader, PD_FEAT_COMPRESSED, &size));
    assert_int_equal(size, 0);
    pd_reader_close(reader);
}

/* The index of trace buffers leads to each AUXTRACE record. */
static void the_index_of_traces_is_right(void **state)
{
    struct pd_auxtrace_index_entry entry;
    struct list list = {0};
    struct pd_reader *reader;
    uint64_t n;
    const char *data;
    size_t size;

    write_good(scratch_path(state, "a.data"), false);
    reader = open_good(scratch_path(state, "a.data"));
    walk(reader, &list);
    data = pd_reader_feature(reader, PD_FEAT_AUXTRACE, &size);
    assert_int_equal(size, sizeof(n) + sizeof(entry));
    memcpy(&n, data, sizeof(n));
    memcpy(&entry, data + sizeof(n), sizeof(entry));
    assert_int_equal(n, 1);
    assert_int_equal(entry.offset, list.records.at[NRECORDS - 1].offset);
    assert_int_equal(entry.size, sizeof(struct pd_auxtrace));
    pd_reader_close(reader);
    st_vec_free(&list.records);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void directory_form_comes_back(void **state)
{
    struct list list = {0};
    struct pd_reader *reader;
    struct file kallsyms = {0};

    write_good(scratch_path(state, "d.data/"), true);
    assert_int_equal(scratch_entries(*state), 1);
    assert_int_equal(mode_of(scratch_path(state, "d.data")), 0700);
    assert_int_equal(mode_of(scratch_path(state, "d.data/data")), 0600);
    assert_int_equal(mode_of(scratch_path(state, "d.data/kcore_dir")), 0700);
    assert_int_equal(scratch_entries(scratch_path(state, "d.data")), 2);
    reader = open_good(scratch_path(state, "d.data"));
    walk(reader, &list);
    check_records(&list, scratch_path(state, "d.data/data"));
    assert_string_equal(pd_reader_kcore_dir(reader), scratch_path(state, "d.data/kcore_dir"));
    file_read(&kallsyms, scratch_path(state, "d.data/kcore_dir/kallsyms"));
    assert_memory_equal(kallsyms.bytes.at, "ffffffff81000000 T _text\n", kallsyms.bytes.n);
    pd_reader_close(reader);
    st_vec_free(&list.records);
    st_vec_free(&kallsyms.bytes);
}

static void a_snapshot_is_private(void **state)
{
    write_good(scratch_path(state, "a.data"), false);
    assert_int_equal(mode_of(scratch_path(state, "a.data")), 0600);
    assert_int_equal(scratch_entries(*state), 1);
}

static void nothing_stands_under_the_name_before_the_end(void **state)
{
    const char *path = scratch_path(state, "a.data");
    struct pd_writer *w;

    for (int directory = 0; directory < 2; directory++) {
        assert_int_equal(pd_writer_open(path, directory, &w, NULL), 0);
        assert_int_equal(recording_events(w, NULL), 0);
        assert_int_equal(recording_records(w, NULL), 0);
        assert_int_equal(access(path, F_OK), -1);
        pd_writer_abort(w);
        assert_int_equal(scratch_entries(*state), 0);
    }
    pd_writer_abort(NULL);
}

/* The name of the folder leads elsewhere by then. */
static void an_open_folder_is_what_counts(void **state)
{
    char old[256], path[256];
    struct pd_writer *w;

    for (int directory = 0; directory < 2; directory++) {
        int folder;

        snprintf(path, sizeof(path), "%s", scratch_path(state, directory ? "b" : "a"));
        snprintf(old, sizeof(old), "%s", scratch_path(state, directory ? "old-b" : "old-a"));
        assert_int_equal(mkdir(path, 0755), 0);
        folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(folder >= 0);
        assert_int_equal(rename(path, old), 0);
        strcat(path, "/x.data");
        assert_int_equal(pd_writer_open_at(folder, path, directory, &w, NULL), 0);
        close(folder);
        assert_int_equal(recording_events(w, NULL), 0);
        assert_int_equal(recording_records(w, NULL), 0);
        assert_int_equal(pd_writer_commit(w, NULL), 0);
        assert_int_equal(scratch_entries(old), 1);
        strcat(old, "/x.data");
        pd_reader_close(open_good(old));
    }
}

static void what_was_there_stays(void **state)
{
    const char *path = scratch_path(state, "a.data");
    struct file file = {0};

    file_write(path, "mine", 4);
    for (int directory = 0; directory < 2; directory++) {
        struct st_error err = {0};

        assert_int_equal(recording_write(path, directory, &err), ST_EFAIL);
        assert_non_null(strstr(err.text, "a.data"));
        assert_non_null(strstr(err.text, "File exists"));
        file_read(&file, path);
        assert_int_equal(file.bytes.n, 4);
        assert_memory_equal(file.bytes.at, "mine", 4);
        assert_int_equal(scratch_entries(*state), 1);
    }
    st_vec_free(&file.bytes);
}

static void a_folder_that_was_there_stays(void **state)
{
    const char *path = scratch_path(state, "d");
    struct st_error err = {0};

    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(recording_write(path, true, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "File exists"));
    assert_int_equal(scratch_entries(path), 0);
    assert_int_equal(scratch_entries(*state), 1);
}

static void a_place_that_cannot_be_written_is_told(void **state)
{
    for (int directory = 0; directory < 2; directory++) {
        struct pd_writer *w = NULL;
        struct st_error err = {0};

        assert_int_equal(pd_writer_open(scratch_path(state, "none/a.data"), directory, &w, &err), ST_EFAIL);
        assert_null(w);
        assert_non_null(strstr(err.text, "none/a.data"));
        assert_non_null(strstr(err.text, "No such file or directory"));
    }
}

static void a_recording_without_records_is_one(void **state)
{
    const char *path = scratch_path(state, "a.data");
    struct list list = {0};
    struct pd_reader *reader;
    struct pd_writer *w;

    assert_int_equal(pd_writer_open(path, false, &w, NULL), 0);
    assert_int_equal(recording_events(w, NULL), 0);
    assert_int_equal(pd_writer_commit(w, NULL), 0);
    reader = open_good(path);
    walk(reader, &list);
    assert_int_equal(list.records.n, 1);
    assert_int_equal(list.records.at[0].header->type, PD_RECORD_FINISHED_ROUND);
    assert_int_equal(pd_reader_nevents(reader), 3);
    pd_reader_close(reader);
    st_vec_free(&list.records);
}

/* A trace that is larger than any buffer, and more records than one buffer holds. */
static void much_comes_back(void **state)
{
    const char *path = scratch_path(state, "a.data");
    const size_t size = 1 << 20;
    uint8_t *trace = malloc(size);
    struct pd_auxtrace head = {.idx = 1};
    struct list list = {0};
    struct pd_reader *reader;
    struct pd_writer *w;
    struct stat st;

    for (size_t i = 0; i < size; i++)
        trace[i] = (uint8_t)(i * 2654435761u >> 24);
    assert_int_equal(pd_writer_open(path, false, &w, NULL), 0);
    assert_int_equal(recording_events(w, NULL), 0);
    for (int i = 0; i < 500; i++)
        assert_int_equal(recording_records(w, NULL), 0);
    assert_int_equal(pd_writer_auxtrace(w, &head, trace, size - 3, trace + size - 3, 3, NULL), 0);
    assert_int_equal(pd_writer_auxtrace(w, &head, NULL, 0, NULL, 0, NULL), 0);
    assert_in_range(pd_writer_size(w), size, 3 * size);
    assert_int_equal(pd_writer_commit(w, NULL), 0);
    reader = open_good(path);
    walk(reader, &list);
    assert_int_equal(list.records.n, 500 * NRECORDS + 1);
    assert_memory_equal(list.records.at[500 * NRECORDS].aux, trace, size);
    assert_int_equal(stat(path, &st), 0);
    pd_reader_close(reader);
    st_vec_free(&list.records);
    free(trace);
}

static int stop_at_third(void *ctx, const struct pd_record *record, struct st_error *err)
{
    int *n = ctx;

    (void)record;
    (void)err;
    return ++*n == 3 ? 33 : 0;
}

static void the_walk_ends_where_the_caller_says(void **state)
{
    struct pd_reader *reader;
    int n = 0;

    write_good(scratch_path(state, "a.data"), false);
    reader = open_good(scratch_path(state, "a.data"));
    assert_int_equal(pd_reader_each(reader, stop_at_third, &n, NULL), 33);
    assert_int_equal(n, 3);
    pd_reader_close(reader);
}

static int refuse(struct pd_writer *w, const struct made *m, const char *word)
{
    struct st_error err = {0};
    int rc = pd_writer_record(w, &m->header, &err);

    assert_non_null(strstr(err.text, word));
    return rc;
}

static struct pd_writer *begin(const char *path)
{
    struct pd_writer *w = NULL;

    assert_int_equal(pd_writer_open(path, false, &w, NULL), 0);
    assert_int_equal(recording_events(w, NULL), 0);
    return w;
}

static void what_could_not_be_read_is_not_written(void **state)
{
    const char *path = scratch_path(state, "a.data");
    struct pd_made_sample large = {.raw = path, .raw_size = 65536};
    struct st_error err = {0};
    struct pd_writer *w;
    struct made m;

    w = begin(path);
    made_mmap2(&m, 0, "/a", T_MMAP2, DUMMY_ID);
    m.header.size = 12;
    assert_int_equal(refuse(w, &m, "MMAP2 (10)"), ST_EFAIL);
    /* Such a writer can only be dropped. */
    assert_int_equal(recording_records(w, &err), ST_EFAIL);
    assert_int_equal(pd_writer_commit(w, &err), ST_EFAIL);
    assert_int_equal(scratch_entries(*state), 0);
    w = begin(path);
    made_start(&m, PD_RECORD_AUXTRACE, 0);
    m.header.size = sizeof(struct pd_auxtrace);
    assert_int_equal(refuse(w, &m, "AUXTRACE (71)"), ST_EFAIL);
    pd_writer_abort(w);
    w = begin(path);
    assert_int_equal(pd_writer_sample(w, STALL_EVENT, &large, &err), ST_EFAIL);
    pd_writer_abort(w);
    w = begin(path);
    large.raw_size = 8;
    assert_int_equal(pd_writer_sample(w, PT_EVENT, &large, &err), ST_EFAIL);
    pd_writer_abort(w);
    w = begin(path);
    assert_int_equal(recording_records(w, NULL), 0);
    assert_int_equal(recording_events(w, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "after the first record"));
    pd_writer_abort(w);
    assert_int_equal(scratch_entries(*state), 0);
}

/* A disk that gets full: every size of it, from none to all but one byte of what is needed. */
static void a_full_disk_leaves_nothing(void **state)
{
    const char *path = scratch_path(state, "a.data");
    struct rlimit old, limit;
    struct stat st;

    write_good(path, false);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(unlink(path), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (off_t room = 0; room < st.st_size; room += room < st.st_size - 200 ? 97 : 1) {
        struct st_error err = {0};

        limit = (struct rlimit){(rlim_t)room, old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(recording_write(path, false, &err), ST_EFAIL);
        assert_int_equal(recording_write(path, true, NULL), ST_EFAIL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_non_null(strstr(err.text, path));
        assert_non_null(strstr(err.text, "File too large"));
        assert_int_equal(scratch_entries(*state), 0);
    }
    signal(SIGXFSZ, SIG_DFL);
    write_good(path, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(events_come_back),
        TEST(records_come_back),
        TEST(offsets_are_those_of_the_file),
        TEST(features_come_back),
        TEST(the_index_of_traces_is_right),
        TEST(directory_form_comes_back),
        TEST(a_snapshot_is_private),
        TEST(nothing_stands_under_the_name_before_the_end),
        TEST(an_open_folder_is_what_counts),
        TEST(what_was_there_stays),
        TEST(a_folder_that_was_there_stays),
        TEST(a_place_that_cannot_be_written_is_told),
        TEST(a_recording_without_records_is_one),
        TEST(much_comes_back),
        TEST(the_walk_ends_where_the_caller_says),
        TEST(what_could_not_be_read_is_not_written),
        TEST(a_full_disk_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
