/* perfdata_seeds FOLDER: recordings to begin fuzzing with, one of each form. */
#include "../unit/perfdata/hand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void save(const char *folder, const char *name, struct file *f)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file_write(path, f->bytes.at, f->bytes.n);
    st_vec_free(&f->bytes);
}

static void add_mmap2(struct file *f, uint64_t time)
{
    struct made m;

    made_mmap2(&m, 0x1000, "/bin/a", time, time % 2 ? 10 : 20);
    file_add(f, &m, m.header.size);
}

static void save_compressed(const char *folder, uint32_t type)
{
    const uint64_t types[] = {SAMPLE_TYPE, SAMPLE_TYPE};
    ZSTD_CStream *stream = ZSTD_createCStream();
    struct file f = {0}, inside = {0};

    for (uint64_t i = 0; i < 4; i++)
        add_mmap2(&inside, i);
    hand_file(&f, types, 2, true, sizeof(struct perf_event_attr));
    hand_compressed(&f, stream, type, inside.bytes.at, 150);
    hand_compressed(&f, stream, type, inside.bytes.at + 150, inside.bytes.n - 150);
    add_mmap2(&f, 9);
    hand_end(&f);
    st_vec_free(&inside.bytes);
    save(folder, type == PD_RECORD_COMPRESSED ? "compressed" : "compressed2", &f);
    ZSTD_freeCStream(stream);
}

static void save_pipe(const char *folder)
{
    const struct pd_pipe_header header = {PD_MAGIC, sizeof(header)};
    struct file f = {0};

    file_add(&f, &header, sizeof(header));
    for (uint64_t id = 10; id <= 20; id += 10) {
        struct perf_event_attr attr = {.size = sizeof(attr), .sample_type = SAMPLE_TYPE, .sample_id_all = 1};
        struct perf_event_header h = {.type = PD_RECORD_HEADER_ATTR,
                                      .size = sizeof(h) + sizeof(attr) + sizeof(id)};

        file_add(&f, &h, sizeof(h));
        file_add(&f, &attr, sizeof(attr));
        file_add(&f, &id, sizeof(id));
    }
    add_mmap2(&f, 1);
    add_mmap2(&f, 2);
    save(folder, "pipe", &f);
}

/* A sample with all fields that have counts, most of them empty. */
static void save_sample(const char *folder)
{
    const uint64_t type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
                          PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
                          PERF_SAMPLE_AUX;
    static const uint64_t words[] = {5, 1, 2, 0xa, 0xb, 4, 1, 1, 2, 3, 0, 8, 0, 8, 8, 0};
    struct file f = {0};
    struct made m;

    hand_file(&f, &type, 1, true, sizeof(struct perf_event_attr));
    made_start(&m, PERF_RECORD_SAMPLE, 0);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        made_u64(&m, words[i]);
    file_add(&f, &m, m.header.size);
    hand_end(&f);
    save(folder, "sample", &f);
}

int main(int argc, char **argv)
{
    struct st_error err = {0};
    char path[4096];

    if (argc != 2) {
        fprintf(stderr, "usage: perfdata_seeds FOLDER\n");
        return 2;
    }
    snprintf(path, sizeof(path), "%s/file", argv[1]);
    if (recording_write(path, false, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    save_compressed(argv[1], PD_RECORD_COMPRESSED);
    save_compressed(argv[1], PD_RECORD_COMPRESSED2);
    save_pipe(argv[1]);
    save_sample(argv[1]);
    return 0;
}
