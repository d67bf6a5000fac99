/* A snapshot, written from a source that is made up and read back with our own reader. */
#include "perfdata/reader.h"
#include "recorder/perf_event.h"
#include "recorder/perf_record.h"
#include "recorder/snapshot.h"

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

/* ------------------------------------------------------------------ the made-up source */

enum {
    PMU = 250,
    ASKED = 5000,
    DONE = 6000,
};

static const uint64_t DONE_TSC = (UINT64_C(3) << 56) + 100; /* the same moment */

static unsigned char newer[48], older[24];

static bool frozen;

static int fake_freeze(struct rec_source *s, struct rec_freeze *how, struct st_error *err)
{
    (void)s;
    (void)err;
    frozen = true;
    *how = (struct rec_freeze){.asked_time = ASKED, .done_time = DONE};
    return 0;
}

/* Ring 0 has wrapped, ring 1 not, ring 2 is empty. */
static int fake_rings(struct rec_source *s, const struct rec_ring **rings, size_t *n, struct st_error *err)
{
    static const struct rec_ring all[] = {
        {.idx = 0,
         .tid = 101,
         .pid = 100,
         .cpu = -1,
         .part = {older, newer},
         .size = {24, 48},
         .offset = 4096,
         .first_time = 1000},
        {.idx = 1,
         .tid = 102,
         .pid = 100,
         .cpu = -1,
         .part = {newer, NULL},
         .size = {48, 0},
         .first_time = 2000},
        {.idx = 2, .tid = 103, .pid = 100, .cpu = -1, .first_time = 3000},
    };

    (void)s;
    (void)err;
    assert_true(frozen);
    *rings = all;
    *n = 3;
    return 0;
}

static int no_rings(struct rec_source *s, const struct rec_ring **rings, size_t *n, struct st_error *err)
{
    (void)s;
    (void)rings;
    (void)n;
    return st_fail(err, ST_EFAIL, "the rings are gone");
}

static int fake_switches(struct rec_source *s, const struct rec_switch **switches, size_t *n,
                         struct st_error *err)
{
    static const struct rec_switch all[] = {
        {.time = 3500, .pid = 100, .tid = 101, .cpu = 1, .out = true, .preempt = true},
        {.time = 4500, .pid = 100, .tid = 101, .cpu = 0},
    };

    (void)s;
    (void)err;
    *switches = all;
    *n = 2;
    return 0;
}

static int fake_resume(struct rec_source *s, struct st_error *err)
{
    (void)s;
    (void)err;
    frozen = false;
    /* What was copied must not be what is overwritten from now on. */
    memset(newer, 0xee, sizeof(newer));
    memset(older, 0xee, sizeof(older));
    return 0;
}

static void fake_pt_event(struct rec_source *s, struct perf_event_attr *attr, const char **name,
                          uint64_t *priv, size_t npriv)
{
    (void)s;
    *attr =
        (struct perf_event_attr){.size = sizeof(*attr), .type = PMU, .config = 0x2401, .exclude_kernel = 1};
    *name = "intel_pt//u";
    memset(priv, 0, npriv * sizeof(*priv));
    priv[PD_PT_PMU_TYPE] = PMU;
    priv[PD_PT_TIME_MULT] = 3; /* 1.5 ns a tick */
    priv[PD_PT_TIME_SHIFT] = 1;
    priv[PD_PT_TIME_ZERO] = DONE - DONE_TSC / 2 * 3; /* far below 0 */
    priv[PD_PT_CAP_USER_TIME_ZERO] = 1;
    priv[PD_PT_TSC_BIT] = 0x400;
}

static const struct rec_source_ops fake = {
    .name = "fake",
    .freeze = fake_freeze,
    .rings = fake_rings,
    .switches = fake_switches,
    .own_switches = true,
    .resume = fake_resume,
    .trace_event = fake_pt_event,
};

static void fill_rings(void)
{
    for (size_t i = 0; i < sizeof(older); i++)
        older[i] = (unsigned char)(i + 1);
    for (size_t i = 0; i < sizeof(newer); i++)
        newer[i] = (unsigned char)(i + 101);
}

/* ------------------------------------------------------------------ what goes in */

struct world {
    char folder[64];

    struct rec_clock clock;

    struct rec_store *store;

    struct rec_sideband *sideband;

    struct rec_kallsyms *kallsyms;

    struct rec_capture capture;

    struct st_target target;

    pid_t self;

    struct st_stall_record stall;

    struct rec_room *room; /* wanted */
};

/* The sample of w->stall. */
static struct perf_event_header *make_sample(const struct world *w, uint64_t buffer[1024], uint64_t time)
{
    const size_t raw_size =
        sizeof(struct st_stall_record) + 4; /* the kernel pads so that the whole is a multiple of 8 */
    struct rec_sample_head *head = (struct rec_sample_head *)buffer;
    uint32_t size = (uint32_t)raw_size;

    head->header = (struct perf_event_header){.type = PERF_RECORD_SAMPLE,
                                              .size = (uint16_t)(sizeof(*head) + sizeof(size) + raw_size)};
    head->id = (1ull << 48) + 3; /* as the event of stalls in the file */
    head->time = time;
    memcpy(head + 1, &size, sizeof(size));
    memcpy((char *)(head + 1) + sizeof(size), &w->stall, sizeof(w->stall));
    assert_int_equal(head->header.size % 8, 0);
    return &head->header;
}

static void add_stall(struct world *w, uint64_t time)
{
    uint64_t buffer[1024] = {0};

    w->stall = (struct st_stall_record){
        .magic = ST_STALL_MAGIC,
        .version = ST_STALL_VERSION,
        .kind = ST_STALL_OFFCPU,
        .flags = ST_STALL_FIRED,
        .seq = 77,
        .pid = 100,
        .tid = 101,
        .syscall = -1,
        .kstack_n = 2,
        .kstack = {0xffffffff81000110, 0xffffffff81000220},
        .timer_func = 0xffffffff81000100,
    };
    assert_int_equal(rec_store_add(w->store, make_sample(w, buffer, time), time, NULL), 0);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct rec_sideband_config config = {.target = &w->target};
    char path[128];
    int fd;

    w->self = getpid();
    w->target = (struct st_target){.kind = ST_TARGET_PIDS, .pids = &w->self, .npids = 1};
    strcpy(w->folder, "/tmp/stalltrap-unit.XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(path, sizeof(path), "%s/kallsyms", w->folder);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    dprintf(fd, "ffffffff81000100 T tick\nffffffff81000200 T do_wait\n");
    close(fd);
    w->kallsyms = rec_kallsyms_open(path);
    unlink(path);
    w->clock.fd = -1;
    assert_int_equal(rec_store_open(NULL, &w->store, NULL), 0);
    assert_int_equal(rec_clock_open(&w->clock, NULL), 0);
    assert_int_equal(rec_sideband_open(&config, &w->clock, w->store, &w->sideband, NULL), 0);
    fill_rings();
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    rec_capture_free(&w->capture);
    rec_sideband_close(w->sideband, -1);
    rec_clock_close(&w->clock);
    rec_store_close(w->store);
    rec_kallsyms_close(w->kallsyms);
    assert_int_equal(rmdir(w->folder), 0); /* no file was left */
    free(w);
    return 0;
}

static int write_it(struct world *w, const char *path, struct st_error *err)
{
    static char *argv[] = {"arm", "--source", "fake"};
    static const char *const warnings[] = {"mind the gap"};
    struct rec_snapshot s = {
        .capture = &w->capture,
        .ops = &fake,
        .sideband = w->sideband,
        .store = w->store,
        .kallsyms = w->kallsyms,
        .target = &w->target,
        .argc = 3,
        .argv = argv,
        .reason = "trigger",
        .text = "thread 101 off-CPU 40 ms",
        .trigger = "offcpu>20ms",
        .fired = &w->stall,
        .source_text = "user, a ring a thread",
        .armed = 900,
        .warnings = warnings,
        .nwarnings = 1,
        .room = w->room,
    };

    return rec_snapshot_write(&s, path, err);
}

static void capture(struct world *w)
{
    assert_int_equal(rec_capture_freeze(&w->capture, &fake, NULL, &w->clock, NULL), 0);
    assert_int_equal(rec_capture_copy(&w->capture, &fake, NULL, &w->clock, NULL), 0);
}

/* ------------------------------------------------------------------ what came out */

struct found {
    unsigned auxtrace, info, time_conv, switches, stalls, names, meta, vdsos;

    uint64_t last; /* time of the side-band */

    bool in_order;

    unsigned char ring0[72];

    uint64_t ring0_offset;

    char pairs[65536]; /* meta, NULs as newlines */

    char symbols[512];

    struct st_vdso_record vdso;

    uint64_t vdso_magic;

    struct st_stall_record stall;
};

static void take_ring(struct found *f, const struct pd_record *r)
{
    const struct pd_auxtrace *a = (const struct pd_auxtrace *)r->header;

    f->auxtrace++;
    assert_int_equal(a->cpu, (uint32_t)-1);
    assert_int_equal(a->reference, DONE_TSC + a->idx);
    if (a->idx)
        return;
    assert_int_equal(a->tid, 101);
    assert_int_equal(a->size, 72);
    f->ring0_offset = a->offset;
    memcpy(f->ring0, r->aux, 72);
}

static void take_names(struct found *f, const char *raw)
{
    struct st_symbol_record head;
    const char *at = raw + sizeof(head);

    memcpy(&head, raw, sizeof(head));
    f->names++;
    for (unsigned i = 0; i < head.n; i++) {
        uint64_t pair[2];

        memcpy(pair, at, 16);
        snprintf(f->symbols + strlen(f->symbols), sizeof(f->symbols) - strlen(f->symbols), "%llx=%s+%llx ",
                 (unsigned long long)pair[0], at + 16, (unsigned long long)(pair[0] - pair[1]));
        at += 16 + strlen(at + 16) + 1;
    }
}

static void take_vdso(struct found *f, const char *raw)
{
    f->vdsos++;
    memcpy(&f->vdso, raw, sizeof(f->vdso));
    memcpy(&f->vdso_magic, raw + sizeof(f->vdso), 8);
}

static void take_sample(struct found *f, const struct pd_record *r)
{
    struct pd_sample sample;
    uint32_t magic;

    assert_int_equal(pd_record_sample(r, &sample, NULL), 0);
    assert_true(sample.raw_size >= 8);
    memcpy(&magic, sample.raw, 4);
    if (magic == ST_STALL_MAGIC) {
        f->stalls++;
        assert_string_equal(r->event->name, ST_STALL_EVENT_NAME);
        memcpy(&f->stall, sample.raw, sizeof(f->stall));
    } else if (magic == ST_SYMBOL_MAGIC) {
        take_names(f, sample.raw);
    } else if (magic == ST_META_MAGIC) {
        const struct st_meta_record *m = sample.raw;
        struct st_meta_record head;

        memcpy(&head, m, sizeof(head));
        f->meta++;
        assert_string_equal(r->event->name, ST_META_EVENT_NAME);
        memcpy(f->pairs, (const char *)sample.raw + sizeof(head), head.n);
        for (unsigned i = 0; i < head.n; i++)
            if (!f->pairs[i])
                f->pairs[i] = '\n';
    } else if (magic == ST_VDSO_MAGIC) {
        take_vdso(f, sample.raw);
    }
}

static int take(void *ctx, const struct pd_record *r, struct st_error *err)
{
    struct found *f = ctx;

    (void)err;
    switch (r->header->type) {
    case PD_RECORD_AUXTRACE:
        assert_true(f->info == 1); /* perf must know the kind of trace before it meets one */
        take_ring(f, r);
        break;
    case PD_RECORD_AUXTRACE_INFO:
        f->info++;
        break;
    case PD_RECORD_TIME_CONV:
        f->time_conv++;
        break;
    case PERF_RECORD_SAMPLE:
        take_sample(f, r);
        break;
    default:
        assert_true(r->header->type < 64);
        f->switches += r->header->type == PERF_RECORD_SWITCH;
        f->in_order &= r->id.time >= f->last;
        f->last = r->id.time;
    }
    return 0;
}

static void expect_pair(const struct found *f, const char *pair)
{
    char line[256];

    snprintf(line, sizeof(line), "%s\n", pair);
    if (!strstr(f->pairs, line))
        fail_msg("no '%s' in:\n%s", pair, f->pairs);
}

static void everything_is_in_it(void **state)
{
    struct world *w = *state;
    struct found *f = calloc(1, sizeof(*f));
    struct pd_reader *reader;
    unsigned char expected[72];
    char path[128], elf[8] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
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

static size_t content_of(const char *path, char *to, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n = fread(to, 1, size, f);

    fclose(f);
    assert_true(n < size);
    return n;
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
    assert_int_equal(rec_room_fill(&room, path, make_sample(w, buffer, 9000), w->kallsyms, NULL), 0);
    assert_int_equal(content_of(path, after, sizeof(after)), n);
    assert_memory_equal(after, before, room.offset);
    assert_memory_equal(after + room.offset + room.size, before + room.offset + room.size,
                        n - room.offset - room.size);
    assert_int_equal(stalls_in(path, f), 2);
    assert_memory_equal(&f->stall, &w->stall, sizeof(f->stall));
    assert_non_null(strstr(f->symbols, "ffffffff81000108=tick+8 "));

    /* The room is used up. */
    assert_int_equal(rec_room_fill(&room, path, make_sample(w, buffer, 9000), w->kallsyms, NULL), 1);
    assert_int_equal(content_of(path, before, sizeof(before)), n);
    assert_memory_equal(after, before, n);

    /* Another file, and none. */
    rename(path, other);
    assert_int_equal(write_it(w, path, NULL), 0);
    assert_int_equal(rec_room_fill(&room, other, make_sample(w, buffer, 9000), w->kallsyms, NULL), 1);
    unlink(path);
    unlink(other);
    assert_int_equal(rec_room_fill(&room, path, make_sample(w, buffer, 9000), w->kallsyms, NULL), 1);
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
    assert_int_equal(rec_capture_freeze(&w->capture, &broken, NULL, &w->clock, NULL), 0);
    assert_true(frozen);
    assert_int_equal(rec_capture_copy(&w->capture, &broken, NULL, &w->clock, &err), ST_EFAIL);
    assert_string_equal(err.text, "the rings are gone");
    assert_false(frozen);
    assert_int_equal(w->capture.rings.n, 0);
    assert_true(w->capture.resumed > 0); /* what follows misses the time of the attempt */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_is_in_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_a_stall_is_put_into_its_snapshot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_is_there_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_is_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failing_source_goes_on, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
