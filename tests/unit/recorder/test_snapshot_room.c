/* The end of a stall is put into the snapshot that was written while it went on. */
#include "snapshot_world.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static size_t content_of(const char *path, char *to, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n = fread(to, 1, size, f);

    fclose(f);
    assert_true(n < size);
    return n;
}

static void put_content(const char *path, const char *content, size_t n)
{
    FILE *f = fopen(path, "we");

    assert_int_equal(fwrite(content, 1, n, f), n);
    fclose(f);
}

static unsigned stalls_in(const char *path, struct found *f)
{
    struct pd_reader *reader;

    *f = (struct found){.in_order = true};
    assert_int_equal(pd_reader_open(path, &reader, NULL), 0);
    assert_int_equal(pd_reader_each(reader, take, f, NULL), 0);
    pd_reader_close(reader);
    return f->stalls;
}

static void the_end_of_a_stall_is_put_into_its_snapshot(void **state)
{
    static char before[1 << 20], after[1 << 20];
    struct world *w = *state;
    struct found *f = calloc(1, sizeof(*f));
    struct rec_room room;
    uint64_t buffer[1024] = {0};
    char path[128], other[128];
    size_t n;

    snprintf(path, sizeof(path), "%s/x.1.data", w->folder);
    snprintf(other, sizeof(other), "%s/y", w->folder);
    add_stall(w, 4000);
    capture(w);
    w->room = &room;
    assert_int_equal(write_it(w, path, NULL), 0);
    assert_int_equal(room.size, 0); /* the stall is over: none is needed */
    unlink(path);
    w->stall.flags |= ST_STALL_ONGOING;
    assert_int_equal(write_it(w, path, NULL), 0);
    assert_true(room.size > 0);
    assert_int_equal(stalls_in(path, f), 1);
    n = content_of(path, before, sizeof(before));

    w->stall.flags = ST_STALL_COMPLETION;
    w->stall.kstack[1] = 0xffffffff81000108;
    assert_int_equal(rec_room_fill(&room, AT_FDCWD, path, make_sample(w, buffer, 9000), w->kallsyms, NULL),
                     0);
    assert_int_equal(content_of(path, after, sizeof(after)), n);
    assert_memory_equal(after, before, room.offset);
    assert_memory_equal(after + room.offset + room.size, before + room.offset + room.size,
                        n - room.offset - room.size);
    assert_int_equal(stalls_in(path, f), 2);
    assert_memory_equal(&f->stall, &w->stall, sizeof(f->stall));
    assert_non_null(strstr(f->symbols, "ffffffff81000108=tick+8 "));

    /* The room is used up. */
    assert_int_equal(rec_room_fill(&room, AT_FDCWD, path, make_sample(w, buffer, 9000), w->kallsyms, NULL),
                     1);
    assert_int_equal(content_of(path, before, sizeof(before)), n);
    assert_memory_equal(after, before, n);

    /* Another file, with the same content, and none. */
    unlink(path);
    w->stall.flags = ST_STALL_FIRED | ST_STALL_ONGOING;
    assert_int_equal(write_it(w, path, NULL), 0);
    n = content_of(path, before, sizeof(before));
    rename(path, other);
    put_content(path, before, n);
    assert_int_equal(rec_room_fill(&room, AT_FDCWD, path, make_sample(w, buffer, 9000), w->kallsyms, NULL),
                     1);
    assert_int_equal(content_of(path, after, sizeof(after)), n);
    assert_memory_equal(after, before, n);
    unlink(path);
    assert_int_equal(rec_room_fill(&room, AT_FDCWD, path, make_sample(w, buffer, 9000), w->kallsyms, NULL),
                     1);
    unlink(other);
    free(f);
}

static int found(const struct rec_written *file, int folder, const char *name, enum rec_written_part part)
{
    int fd = rec_written_find(file, folder, name, part), is = -1;
    struct stat st;

    if (fd >= 0 && !fstat(fd, &st))
        is = S_ISDIR(st.st_mode) ? 2 : S_ISREG(st.st_mode) ? 1 : 0;
    if (fd >= 0)
        close(fd);
    return is;
}

static void a_snapshot_is_found_again_and_no_other(void **state)
{
    static const char *const files[] = {"f", "l", "ld", "other", "d/data"};
    struct world *w = *state;
    int at = open(w->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct rec_written file;
    struct stat st;

    assert_int_equal(mkdirat(at, "d", 0700), 0);
    close(openat(at, "d/data", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close(openat(at, "other", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(fstatat(at, "d/data", &st, 0), 0);
    file = (struct rec_written){.dev = st.st_dev, .ino = st.st_ino};
    assert_int_equal(found(&file, at, "d", REC_WRITTEN_ALL), 2);
    assert_int_equal(found(&file, at, "d", REC_WRITTEN_DATA), 1);
    assert_int_equal(found(&file, at, "other", REC_WRITTEN_ALL), -1);
    assert_int_equal(found(&file, at, "none", REC_WRITTEN_ALL), -1);
    assert_int_equal(symlinkat("d/data", at, "l"), 0);
    assert_int_equal(found(&file, at, "l", REC_WRITTEN_ALL), -1);
    assert_int_equal(symlinkat("d", at, "ld"), 0);
    assert_int_equal(found(&file, at, "ld", REC_WRITTEN_ALL), -1);
    assert_int_equal(renameat(at, "d/data", at, "f"), 0);
    assert_int_equal(found(&file, at, "f", REC_WRITTEN_ALL), 1);
    assert_int_equal(found(&file, at, "f", REC_WRITTEN_DATA), 1);
    assert_int_equal(found(&file, at, "d", REC_WRITTEN_ALL), -1);
    assert_int_equal(symlinkat("../f", at, "d/data"), 0);
    assert_int_equal(found(&file, at, "d", REC_WRITTEN_DATA), -1);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        assert_int_equal(unlinkat(at, files[i], 0), 0);
    assert_int_equal(unlinkat(at, "d", AT_REMOVEDIR), 0);
    close(at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_end_of_a_stall_is_put_into_its_snapshot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_snapshot_is_found_again_and_no_other, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
