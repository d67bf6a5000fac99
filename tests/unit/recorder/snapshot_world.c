/* The snapshot of a made-up source. */
#include "snapshot_world.h"

#include "recorder/perf/event.h"

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

static const uint64_t DONE_TSC = (UINT64_C(3) << 56) + 100; /* the same moment */

static unsigned char newer[48], older[24];

bool frozen;

static int fake_freeze(struct rec_source *s, struct rec_first first, struct rec_freeze *how,
                       struct st_error *err)
{
    (void)s;
    (void)first;
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

int no_rings(struct rec_source *s, const struct rec_ring **rings, size_t *n, struct st_error *err)
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

const struct rec_source_ops fake = {
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

/* The sample of w->stall. */
struct perf_event_header *make_sample(const struct world *w, uint64_t buffer[1024], uint64_t time)
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

void add_stall(struct world *w, uint64_t time)
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

int set_up(void **state)
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

int tear_down(void **state)
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

int write_it(struct world *w, const char *path, struct st_error *err)
{
    static char *argv[] = {"arm", "--source", "fake"};
    static const char *const warnings[] = {"mind the gap"};
    struct rec_facts facts;
    struct rec_snapshot s = {
        .folder = -1,
        .capture = &w->capture,
        .facts = &facts,
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

    int rc = rec_facts_take(&facts, &fake, NULL, w->sideband, w->store, NULL, &w->target, err);

    if (!rc)
        rc = rec_snapshot_write(&s, path, NULL, err);
    rec_facts_free(&facts);
    return rc;
}

void capture(struct world *w)
{
    assert_int_equal(
        rec_capture_freeze(&w->capture, &fake, NULL, (struct rec_first){-1, -1}, &w->clock, NULL), 0);
    assert_int_equal(rec_capture_copy(&w->capture, &fake, NULL, &w->clock, NULL), 0);
}

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

int take(void *ctx, const struct pd_record *r, struct st_error *err)
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

void expect_pair(const struct found *f, const char *pair)
{
    char line[256];

    snprintf(line, sizeof(line), "%s\n", pair);
    if (!strstr(f->pairs, line))
        fail_msg("no '%s' in:\n%s", pair, f->pairs);
}
