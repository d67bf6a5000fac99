/* A snapshot, written from a source that is made up and read back with our own reader. */
#include "snapshot_world.h"

#include "recorder/code/build_id.h"
#include "recorder/perf/event.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* "build_id.PID=HEX" of this program. */
static void own_build_id(char *text, size_t size)
{
    uint8_t id[REC_BUILD_ID_MAX];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        at = snprintf(text, size, "build_id.%d=", getpid());
    size_t n = rec_build_id_of_fd(fd, id);

    close(fd);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        at += snprintf(text + at, size - (size_t)at, "%02x", id[i]);
}

static void everything_is_in_it(void **state)
{
    struct world *w = *state;
    struct found *f = calloc(1, sizeof(*f));
    struct pd_reader *reader;
    unsigned char expected[72];
    char path[128], id[64], elf[8] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    struct stat st;

    f->in_order = true;
    snprintf(path, sizeof(path), "%s/x.1.data", w->folder);
    for (int i = 0; i < 72; i++)
        expected[i] = (unsigned char)(i < 24 ? i + 1 : i - 24 + 101);
    add_stall(w, 4000);
    capture(w);
    assert_false(frozen);
    assert_int_equal(write_it(w, path, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    assert_int_equal(pd_reader_open(path, &reader, NULL), 0);
    assert_int_equal(pd_reader_each(reader, take, f, NULL), 0);
    assert_int_equal(f->auxtrace, 2); /* the empty ring needs none */
    assert_memory_equal(f->ring0, expected, 72);
    assert_int_equal(f->ring0_offset, 4096);
    assert_int_equal(f->time_conv, 1);
    assert_int_equal(f->switches, 2);
    assert_true(f->in_order);
    assert_int_equal(f->stalls, 1);
    assert_memory_equal(&f->stall, &w->stall, sizeof(f->stall));
    assert_string_equal(f->symbols,
                        "ffffffff81000100=tick+0 ffffffff81000110=tick+10 ffffffff81000220=do_wait+20 ");
    assert_int_equal(f->vdsos, 1);
    assert_int_equal(f->vdso.pid, getpid());
    assert_true(f->vdso.size > 0 && f->vdso.size % 4096 == 0);
    assert_memory_equal(&f->vdso_magic, elf, 7);
    expect_pair(f, "reason=trigger");
    expect_pair(f, "trigger=offcpu>20ms");
    expect_pair(f, "trigger_seq=77");
    expect_pair(f, "source=fake");
    expect_pair(f, "freeze_asked=5000");
    expect_pair(f, "freeze_done=6000");
    expect_pair(f, "in_kernel=0");
    expect_pair(f, "ring.0=tid=101 cpu=-1 since=1000 offset=4096 size=72 in_kernel=0 stopped=0");
    expect_pair(f, "ring.2=tid=103 cpu=-1 since=3000 offset=0 size=0 in_kernel=0 stopped=0");
    expect_pair(f, "warning=mind the gap");
    own_build_id(id, sizeof(id));
    expect_pair(f, id);

    assert_int_equal(pd_reader_nevents(reader), 5);
    assert_int_equal(pd_reader_event(reader, 0)->attr.type, PMU);
    for (size_t i = 0; i < 5; i++) {
        const struct pd_event *e = pd_reader_event(reader, i);

        assert_true(e->nids > 0);
        assert_true(e->attr.sample_id_all);
        assert_int_equal(e->attr.sample_type & REC_SAMPLE_TYPE, REC_SAMPLE_TYPE);
    }
    pd_reader_close(reader);
    unlink(path);
    free(f);
}

static void a_file_that_is_there_stays(void **state)
{
    struct world *w = *state;
    struct st_error err = {0};
    char path[128], content[8] = "";
    int fd;

    snprintf(path, sizeof(path), "%s/x.1.data", w->folder);
    fd = open(path, O_CREAT | O_RDWR, 0600);
    assert_int_equal(write(fd, "mine", 4), 4);
    add_stall(w, 4000);
    capture(w);
    assert_int_equal(write_it(w, path, &err), ST_EFAIL);
    assert_int_equal(pread(fd, content, sizeof(content), 0), 4);
    assert_string_equal(content, "mine");
    close(fd);
    unlink(path);
}

static void a_folder_that_is_not_there(void **state)
{
    struct world *w = *state;
    struct st_error err = {0};

    add_stall(w, 4000);
    capture(w);
    assert_int_equal(write_it(w, "/no/such/folder/x.1.data", &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "/no/such/folder/x.1.data"));
}

static void a_failing_source_goes_on(void **state)
{
    struct world *w = *state;
    struct rec_source_ops broken = fake;
    struct st_error err = {0};

    broken.rings = no_rings;
    assert_int_equal(
        rec_capture_freeze(&w->capture, &broken, NULL, (struct rec_first){-1, -1}, &w->clock, NULL), 0);
    assert_true(frozen);
    assert_int_equal(rec_capture_copy(&w->capture, &broken, NULL, &w->clock, &err), ST_EFAIL);
    assert_string_equal(err.text, "the rings are gone");
    assert_false(frozen);
    assert_int_equal(w->capture.rings.n, 0);
    assert_true(w->capture.resumed > 0); /* what follows misses the time of the attempt */
}

static char large[1 << 20];

static int large_rings(struct rec_source *s, const struct rec_ring **rings, size_t *n, struct st_error *err)
{
    static const struct rec_ring ring = {.tid = 1, .cpu = -1, .part = {large}, .size = {sizeof(large)}};

    (void)s;
    (void)err;
    *rings = &ring;
    *n = 1;
    return 0;
}

/* Whether a child of this process gets the memory at an address: "dc" of its mapping says that it does not
 * (proc_pid_smaps(5)). */
static bool is_inherited(const void *at)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    unsigned long start, end;
    bool inherited = true, inside = false;
    char line[512];

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            inside = (uintptr_t)at >= start && (uintptr_t)at < end;
        else if (inside && !strncmp(line, "VmFlags:", 8))
            inherited = !strstr(line, " dc ");
    fclose(f);
    return inherited;
}

/* To copy the page tables of a gigabyte for a child that has no use for it holds up the next trap. */
static void children_do_not_get_the_copies(void **state)
{
    struct world *w = *state;
    struct rec_source_ops ops = fake;
    struct st_error err = {0};

    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)(i * 7);
    ops.rings = large_rings;
    assert_int_equal(rec_capture_freeze(&w->capture, &ops, NULL, (struct rec_first){-1, -1}, &w->clock, &err),
                     0);
    assert_int_equal(rec_capture_copy(&w->capture, &ops, NULL, &w->clock, &err), 0);
    assert_int_equal(w->capture.rings.n, 1);
    assert_memory_equal(w->capture.rings.at[0].part[0], large, sizeof(large));
    assert_true(is_inherited(large));
    assert_false(is_inherited(w->capture.rings.at[0].part[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_is_in_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(children_do_not_get_the_copies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_is_there_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_is_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failing_source_goes_on, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
