/* The samples of a recording become calls and gaps of its threads. */
#include "recording.h"

#include "decoder/model/db/db.h"
#include "decoder/model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static sqlite3 *db;

enum { MS = 1000 * 1000 };

#define K(x) (0xffffffff81000000 + (x))

static int set_up(void **state)
{
    static const struct recording_name names[] = {{K(0x110), K(0x100), "do_syscall_64"},
                                                  {K(0x210), K(0x200), "vfs_read"},
                                                  {K(0x310), K(0x300), "schedule"},
                                                  {K(0x410), K(0x400), "copy_page [module]"},
                                                  {K(0x510), K(0x500), "asm_exc_page_fault"}};

    (void)state;
    recording_begin();
    recording_at(1 * MS, 10, 10, 0);
    recording_comm(10, 10, "prog", false);
    recording_mmap(10, 0x400000, 0x10000, 0, "/nowhere/prog");
    recording_mmap(10, 0x500000, 0x10000, 0, "/nowhere/lib");
    recording_names(names, 5);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sqlite3_close(db);
    db = NULL;
    recording_remove();
    return 0;
}

static void user(uint64_t time)
{
    recording_at(time, 10, 10, 0);
    recording_sample(false, (uint64_t[]){PERF_CONTEXT_USER, 0x400010}, 2);
}

static void in_kernel(uint64_t time, bool at_switch, uint64_t innermost)
{
    const uint64_t chain[] = {PERF_CONTEXT_KERNEL, innermost, K(0x110), PERF_CONTEXT_USER, 0x400010};

    recording_at(time, 10, 10, 0);
    recording_sample(at_switch, chain, 5);
}

static void store(void)
{
    struct dec_flow_counts counts = {0};
    struct st_error err = {0};
    struct dec_provenance from = {.snapshot = "test", .flow = &counts};
    struct pd_reader *reader = NULL;
    struct dec_images *images = NULL;
    struct dec_sideband *sb = NULL;
    struct dec_model *model = NULL;
    struct tdb_writer *w;

    recording_end();
    if (pd_reader_open(recording_path(), &reader, &err) || dec_images_new(NULL, &images, &err) ||
        dec_sideband_read(reader, images, &sb, &err) || dec_model_new(sb, NULL, &model, &err))
        fail_msg("%s", err.text);
    from.reader = reader;
    if (dec_model_samples(model, &err) || dec_model_end(model, &err) ||
        tdb_writer_open(recording_database(), &w, &err) || dec_model_write(model, w, &from, &err) ||
        tdb_writer_commit(w, true, &err) || tdb_open(recording_database(), &db, &err))
        fail_msg("%s", err.text);
    dec_model_free(model);
    dec_sideband_free(sb);
    dec_images_free(images);
    pd_reader_close(reader);
}

/* The rows of a query: columns with '|', rows with '\n'; NULL is "-". Times in us. */
static const char *query(const char *sql)
{
    static char text[4096];
    sqlite3_stmt *s;
    size_t n = 0;

    text[0] = '\0';
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            const char *value = (const char *)sqlite3_column_text(s, i);

            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? "|" : "", value ? value : "-");
        }
        n += (size_t)snprintf(text + n, sizeof(text) - n, "\n");
        assert_true(n < sizeof(text));
    }
    sqlite3_finalize(s);
    return text;
}

static const char calls[] =
    "SELECT depth, function, module, kernel, start_ns / 1000, end_ns / 1000, flags FROM calls ORDER BY id";
static const char gaps[] = "SELECT reason, start_ns / 1000, end_ns / 1000, detail FROM gaps WHERE reason <> "
                           "'not attached' ORDER BY start_ns";

static void kernel_and_user_frames_have_names(void **state)
{
    (void)state;
    user(2 * MS);
    in_kernel(3 * MS, false, K(0x210));
    in_kernel(4 * MS, false, K(0x410));
    store();
    assert_string_equal(query(calls), "0|[prog]|prog|0|1000|3000|35\n"
                                      "1|do_syscall_64|[kernel]|1|1500|3000|34\n"
                                      "2|vfs_read|[kernel]|1|1500|2500|32\n"
                                      "2|copy_page|[module]|1|2500|3000|34\n");
    assert_string_equal(
        query("SELECT key, value FROM meta WHERE key LIKE '%sample%' OR key = 'source' OR key "
              "= 'traced' ORDER BY key"),
        "sample_period_ns|1000000\nsamples|3\nsource|sample\nswitch_samples|0\n"
        "traced|user+kernel\n");
}

/* How well it is known what the thread did in a stall: samples at switches do not count. */
static void a_stall_tells_how_many_samples_it_has(void **state)
{
    struct st_stall_record r = {.magic = ST_STALL_MAGIC,
                                .version = ST_STALL_VERSION,
                                .kind = ST_STALL_BUSY,
                                .start_ktime = 3 * MS,
                                .end_ktime = 6 * MS,
                                .now_ktime = 7 * MS,
                                .pid = 10,
                                .tid = 10,
                                .syscall = -1};

    (void)state;
    for (uint64_t ms = 2; ms < 9; ms++)
        user(ms * MS + 1);
    in_kernel(4 * MS, true, K(0x310));
    recording_at(7 * MS, 10, 10, 0);
    recording_stall(&r);
    store();
    assert_string_equal(query("SELECT value FROM stall_attr WHERE key = 'samples'"), "3\n");
}

static void a_thread_that_waits_is_where_it_left_its_cpu(void **state)
{
    (void)state;
    user(2 * MS);
    in_kernel(3 * MS, true, K(0x310));
    recording_at(3 * MS + 1000, 10, 10, 0);
    recording_switch(true, false);
    recording_at(43 * MS + 1000, 10, 10, 0);
    recording_switch(false, false);
    user(44 * MS);
    store();
    assert_string_equal(query("SELECT start_ns / 1000, end_ns / 1000, self_ns FROM calls WHERE function = "
                              "'schedule'"),
                        "1993|42001|8000\n");
    assert_string_equal(
        query("SELECT c.function, o.start_ns / 1000, o.end_ns / 1000, o.preempted FROM offcpu "
              "o JOIN calls c ON c.id = o.call_id"),
        "schedule|2001|42001|0\n");
    assert_string_equal(query("SELECT sum(self_ns) / 1000 FROM calls"), "2000\n");
    assert_string_equal(query(gaps), "");
}

/* A sample before a wait of 40 ms and one behind it, none as it began; `flags` are of the trigger's record of
 * it. */
static void a_wait_of_which_a_trigger_tells(uint32_t flags, bool sampled)
{
    struct st_stall_record r = {.magic = ST_STALL_MAGIC,
                                .version = ST_STALL_VERSION,
                                .kind = ST_STALL_OFFCPU,
                                .flags = flags,
                                .start_ktime = 3 * MS,
                                .end_ktime = 43 * MS,
                                .now_ktime = 43 * MS,
                                .measured_ns = 40 * MS,
                                .pid = 10,
                                .tid = 10,
                                .kstack_n = 2,
                                .ustack_n = 2,
                                .kstack = {K(0x310), K(0x110)},
                                .ustack = {0x500010, 0x400020}};

    user(2 * MS);
    if (sampled)
        in_kernel(3 * MS - 1000, true, K(0x210));
    recording_at(3 * MS + 1000, 10, 10, 0);
    recording_switch(true, false);
    recording_at(43 * MS, 10, 10, 0);
    recording_stall(&r);
    recording_at(43 * MS + 1000, 10, 10, 0);
    recording_switch(false, false);
    user(44 * MS);
    store();
}

static const char in_the_wait[] = "SELECT depth, function, start_ns / 1000, end_ns / 1000 FROM calls WHERE "
                                  "start_ns < 40000000 AND end_ns > "
                                  "10000000 ORDER BY id";
static const char left_in[] = "SELECT c.function FROM offcpu o JOIN calls c ON c.id = o.call_id";

/* Where it was before and behind is not where it waited. */
static void a_triggers_stack_tells_where_it_waited(void **state)
{
    (void)state;
    a_wait_of_which_a_trigger_tells(0, false);
    assert_string_equal(query(in_the_wait), "0|[prog]|1000|43000\n"
                                            "1|[lib]|1993|42001\n"
                                            "2|do_syscall_64|1993|42001\n"
                                            "3|schedule|1993|42001\n");
    assert_string_equal(query(left_in), "schedule\n");
}

static void a_sample_at_the_switch_tells_it_before_the_trigger(void **state)
{
    (void)state;
    a_wait_of_which_a_trigger_tells(0, true);
    assert_string_equal(query(left_in), "vfs_read\n");
}

/* Its inner frames may be of later calls. */
static void a_stack_that_was_taken_late_tells_nothing_of_the_wait(void **state)
{
    (void)state;
    a_wait_of_which_a_trigger_tells(ST_STALL_STACK_LATE, false);
    assert_string_equal(query("SELECT count(*) FROM calls WHERE module = 'lib'"), "0\n");
}

/* Twice in the same place. */
static void wait_twice(const uint64_t *chain, size_t n)
{
    const uint64_t runs[] = {PERF_CONTEXT_USER, 0x400030, 0x400010};

    recording_at(2 * MS, 10, 10, 0);
    recording_sample(false, runs, 3);
    for (uint64_t i = 0; i < 2; i++) {
        recording_at((3 + 20 * i) * MS, 10, 10, 0);
        recording_sample(true, chain, (uint32_t)n);
        recording_at((3 + 20 * i) * MS + 1000, 10, 10, 0);
        recording_switch(true, false);
        recording_at((22 + 20 * i) * MS, 10, 10, 0);
        recording_switch(false, false);
    }
    recording_at(44 * MS, 10, 10, 0);
    recording_sample(false, runs, 3);
    store();
}

static const char waits[] =
    "SELECT module, count(*), max(duration_ns) < 20000000, max(flags & 192) FROM calls "
    "WHERE duration_ns > 18000000 GROUP BY 1 ORDER BY 1";

/* The library's function that waits is closed with the wait, its callers are not. */
static void a_wait_ends_the_system_call(void **state)
{
    const uint64_t chain[] = {
        PERF_CONTEXT_KERNEL, K(0x310), K(0x110), PERF_CONTEXT_USER, 0x500010, 0x500020, 0x400020, 0x400010};

    (void)state;
    wait_twice(chain, 8);
    assert_string_equal(query(waits), "[kernel]|4|1|128\nlib|4|1|128\nprog|2|0|64\n");
}

/* A chain that broke off: all that is left of it is what waited. */
static void a_wait_ends_what_a_broken_chain_shows(void **state)
{
    const uint64_t chain[] = {PERF_CONTEXT_KERNEL, K(0x310), K(0x110), PERF_CONTEXT_USER, 0x500010};

    (void)state;
    wait_twice(chain, 5);
    assert_string_equal(query(waits), "[kernel]|4|1|128\nlib|2|1|128\n");
}

/* The function goes on behind a page fault. */
static void a_fault_ends_no_function(void **state)
{
    const uint64_t chain[] = {PERF_CONTEXT_KERNEL, K(0x310), K(0x510), PERF_CONTEXT_USER, 0x400020, 0x400010};

    (void)state;
    wait_twice(chain, 6);
    assert_string_equal(query(waits), "[kernel]|4|1|128\nprog|2|0|64\n");
}

static void lost_samples_end_a_segment(void **state)
{
    (void)state;
    user(2 * MS);
    user(3 * MS);
    recording_at(6 * MS, 10, 10, 0);
    recording_lost_samples(3);
    user(7 * MS);
    user(8 * MS);
    store();
    assert_string_equal(query(calls), "0|[prog]|prog|0|1000|2000|35\n"
                                      "0|[prog]|prog|0|6000|7000|35\n");
    assert_string_equal(query(gaps), "lost|2000|5000|3 samples did not fit into the kernel's buffer\n");
}

/* The notice of marks that were dropped is of the recording's first time, and came last. */
static void samples_are_missed_behind_other_notices(void **state)
{
    static const char meta[] = "marks_since=1500000\0";

    (void)state;
    user(2 * MS);
    user(3 * MS);
    recording_at(6 * MS, 10, 10, 0);
    recording_lost_samples(3);
    user(7 * MS);
    user(8 * MS);
    recording_meta(meta, sizeof(meta) - 1);
    store();
    assert_string_equal(query(calls), "0|[prog]|prog|0|1000|2000|35\n"
                                      "0|[prog]|prog|0|6000|7000|35\n");
}

static void throttling_is_a_gap(void **state)
{
    (void)state;
    user(2 * MS);
    recording_at(2 * MS + 100000, 10, 10, 0);
    recording_throttle(true);
    recording_at(5 * MS, 10, 10, 0);
    recording_throttle(false);
    user(6 * MS);
    store();
    assert_string_equal(query(calls), "0|[prog]|prog|0|1000|1100|35\n"
                                      "0|[prog]|prog|0|5000|5000|35\n");
    assert_string_equal(query(gaps),
                        "throttled|1100|4000|the kernel held the samples back: too many in a tick\n");
}

/* But not of a thread that had no CPU. */
static void no_sample_for_periods_is_a_gap(void **state)
{
    (void)state;
    user(2 * MS);
    recording_at(3 * MS, 10, 10, 0);
    recording_switch(true, true);
    recording_at(13 * MS, 10, 10, 0);
    recording_switch(false, false);
    user(14 * MS);
    user(20 * MS);
    store();
    assert_string_equal(query(gaps),
                        "not sampled|13000|19000|the thread had a CPU: the machine stood still, or "
                        "interrupts were off\n");
}

/* Where the recorder samples less often, a thread is not sampled for longer; what it left out is a gap. */
static void what_was_left_out_is_a_gap(void **state)
{
    static const char meta[] = "left_out=since=3000000 switches=7 wakes=1 rate=250 of=1000\0";

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    user(2 * MS);
    recording_at(3 * MS, 10, 10, 0);
    recording_switch(true, true);
    recording_at(4 * MS, 10, 10, 0);
    recording_switch(false, false);
    user(14 * MS);
    user(27 * MS);
    store();
    assert_string_equal(
        query(gaps),
        "left out|2000|26000|sampled less often, so that it cost the target no more than it may: down to one "
        "in 7 "
        "context switches of a thread, 250 samples a second instead of 1000 where threads switch often\n"
        "not sampled|13000|26000|the thread had a CPU: the machine stood still, or interrupts were off\n");
}

static void a_full_ring_hides_the_past(void **state)
{
    static const char meta[] = "ring.0=tid=10 cpu=-1 since=1500000 offset=4096 size=100 truncated=0\0";

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    user(2 * MS);
    user(3 * MS);
    store();
    assert_string_equal(query("SELECT reason, start_ns, end_ns / 1000, detail FROM gaps"),
                        "overwritten|0|1000|older samples were overwritten in the ring\n");
}

/* A thread that was born while samples were taken is there from its birth on, and nothing of it is missing;
 * not so where older samples were overwritten. */
static void born_meanwhile(const char *ring, const char *start, const char *missing)
{
    char meta[256];
    int n = snprintf(meta, sizeof(meta), "ring.0=tid=10 cpu=-1 since=500000 offset=0 size=100%cring.1=%s", 0,
                     ring);

    recording_meta(meta, (size_t)n + 1);
    recording_at(3 * MS / 2, 10, 10, 0);
    recording_fork(10, 10, 11, 10);
    recording_at(8 * MS / 5, 10, 11, 0);
    recording_switch(false, false);
    for (uint64_t time = 2 * MS; time <= 3 * MS; time += MS) {
        recording_at(time, 10, 11, 0);
        recording_sample(false, (uint64_t[]){PERF_CONTEXT_USER, 0x400010}, 2);
    }
    store();
    assert_string_equal(query("SELECT c.start_ns / 1000 FROM calls c JOIN threads t ON t.id = c.thread_id "
                              "WHERE t.tid = 11 AND depth = 0"),
                        start);
    assert_string_equal(query("SELECT reason FROM gaps"), missing);
}

static void a_newborn_thread_is_whole(void **state)
{
    (void)state;
    born_meanwhile("tid=11 cpu=-1 since=500000 offset=0 size=100", "500\n", "");
}

static void a_newborn_thread_whose_samples_were_overwritten(void **state)
{
    (void)state;
    born_meanwhile("tid=11 cpu=-1 since=500000 offset=4096 size=100", "1000\n", "overwritten\n");
}

/* The recorder heard of the thread a moment after its birth, and gave it a ring then. */
static void a_newborn_thread_whose_ring_came_late(void **state)
{
    (void)state;
    born_meanwhile("tid=11 cpu=-1 since=1700000 offset=0 size=100", "1000\n", "not attached\n");
}

/* Of threads 11 to 14 there is no sample: the ring of 11 went, 12 had none for want of room, 13 ran and had
 * none, 14 did not run. */
static void who_has_no_ring_is_no_silent_hole(void **state)
{
    static const char meta[] = "ring.0=tid=10 cpu=-1 since=500000 offset=0 size=100\0"
                               "no_ring.11=pid=10 since=500000 until=1800000\0"
                               "no_ring.12=pid=10 since=0 until=1900000\0"
                               "no_ring.14=pid=99 since=0 until=1900000\0"
                               "no_ring.77=pid=10 since=0 until=1900000\0";

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    for (uint32_t tid = 11; tid <= 14; tid++)
        recording_comm(10, tid, "t", false);
    for (uint32_t tid = 12; tid <= 13; tid++) {
        recording_at(2 * MS + tid * 1000, 10, tid, 0);
        recording_switch(false, false);
        recording_at(2 * MS + tid * 1000 + 500, 10, tid, 0);
        recording_switch(true, false);
    }
    user(3 * MS);
    user(4 * MS);
    store();
    assert_string_equal(
        query("SELECT t.tid, reason, g.start_ns / 1000, g.end_ns / 1000, detail FROM gaps g JOIN thread t ON "
              "t.id = g.thread_id WHERE t.tid > 10 ORDER BY 1"),
        "11|no ring|0|3000|its ring went as it was idle for longest: all together take so much at most\n"
        "12|no ring|0|3000|there was no room for a ring: all together take so much at most\n"
        "13|not attached|1013|3000|the thread had no ring while it ran\n");
}

/* Rings of CPUs have all threads. */
static void in_rings_of_cpus_nobody_lacks_one(void **state)
{
    static const char meta[] = "ring.0=tid=-1 cpu=0 since=500000 offset=0 size=100\0";

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    recording_at(2 * MS, 10, 11, 0);
    recording_comm(10, 11, "t", false);
    recording_switch(false, false);
    user(3 * MS);
    store();
    assert_string_equal(
        query("SELECT reason FROM gaps g JOIN thread t ON t.id = g.thread_id WHERE t.tid = 11"), "");
}

static void a_cpu_that_went_is_a_gap(void **state)
{
    static const char meta[] = "unseen_cpus=0,7\0";

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    user(2 * MS);
    recording_at(4 * MS, 10, 10, 1);
    recording_sample(false, (uint64_t[]){PERF_CONTEXT_USER, 0x400010}, 2);
    store();
    assert_string_equal(query("SELECT cpu, start_ns / 1000, end_ns / 1000 FROM gaps WHERE reason = 'cpu not "
                              "recorded' ORDER BY cpu"),
                        "0|1000|3000\n7|0|3000\n");
}

/* prog called lib, which called itself. */
static void a_stack_of_branches_is_a_chain(void **state)
{
    (void)state;
    recording_at(2 * MS, 10, 10, 0);
    recording_branches((uint64_t[][2]){{0x500020, 0x500100}, {0x400010, 0x500000}}, 2);
    recording_at(3 * MS, 10, 10, 0);
    recording_branches((uint64_t[][2]){{0x400010, 0x500000}}, 1);
    recording_at(4 * MS, 10, 10, 0);
    recording_branches(NULL, 0);
    store();
    assert_string_equal(query(calls), "0|[prog]|prog|0|1000|2500|33\n"
                                      "1|[lib]|lib|0|1000|2500|33\n"
                                      "2|[lib]|lib|0|1000|1500|33\n");
}

/* What looks like a chain and is garbage, or of a thread nobody has heard of. */
static void foreign_chains_do_no_harm(void **state)
{
    (void)state;
    user(2 * MS);
    recording_at(3 * MS, 10, 10, 0);
    recording_sample(false, (uint64_t[]){1, 2, PERF_CONTEXT_USER, 0x400010, 0, UINT64_MAX, 5}, 7);
    recording_at(4 * MS, 10, 10, 0);
    recording_sample(false, NULL, 0);
    recording_at(4 * MS, 77, 78, 5);
    recording_sample(false, (uint64_t[]){PERF_CONTEXT_GUEST_USER, 0x1234}, 2);
    recording_at(5 * MS, 0, 0, 1);
    recording_sample(false, (uint64_t[]){PERF_CONTEXT_KERNEL, K(0x210)}, 2);
    store();
    assert_string_equal(query("SELECT count(*) FROM calls WHERE end_ns < start_ns OR self_ns < 0"), "0\n");
    assert_string_equal(query("SELECT value FROM meta WHERE key = 'samples'"), "5\n");
}

static void wake_ups_that_are_missing_are_gaps(void **state)
{
    static const char meta[] = "unmarked_cpus=3\0marks.1=cpu=2 since=1500000 offset=4096 size=4096\0";

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    user(2 * MS);
    user(3 * MS);
    store();
    assert_string_equal(
        query("SELECT reason, cpu, start_ns / 1000, end_ns / 1000, detail FROM gaps WHERE detail LIKE "
              "'%wake-ups%' ORDER BY cpu"),
        "overwritten|2|500|2000|older wake-ups were overwritten in the ring\n"
        "cpu not recorded|3|0|2000|the CPU came or went while the recorder was armed: "
        "wake-ups on it are missing\n");
}

/* 3 is close of 64-bit programs, and read of 32-bit ones. A program that executes one of the other kind goes
 * on with the other names. */
static void system_calls_are_named_by_the_kind_of_program(void **state)
{
    (void)state;
    recording_at(2 * MS, 10, 10, 0);
    recording_mmap(10, 0x7ffff7fc1000, 0x1000, 0, "[vdso]");
    recording_syscall(3, 0);
    recording_fork(11, 10, 11, 10);
    recording_at(3 * MS, 11, 11, 0);
    recording_syscall(3, 0);
    recording_at(4 * MS, 11, 11, 0);
    recording_comm(11, 11, "narrow", true);
    recording_mmap(11, 0xf7fc4000, 0x1000, 0, "[vdso]");
    recording_at(5 * MS, 11, 11, 0);
    recording_syscall(3, 7);
    recording_fork(12, 11, 12, 11);
    recording_at(6 * MS, 12, 12, 0);
    recording_syscall(3, 8);
    store();
    assert_string_equal(
        query("SELECT t.tid, m.name, m.detail FROM mark m JOIN thread t ON t.id = m.thread_id "
              "WHERE m.name LIKE 'sys%' ORDER BY m.time_ns"),
        "10|syscall|close(0x1, 0x2, 0x3, 0, 0, 0)\n"
        "10|sysret|close = 0\n"
        "11|syscall|close(0x1, 0x2, 0x3, 0, 0, 0)\n"
        "11|sysret|close = 0\n"
        "11|syscall|read(0x1, 0x2, 0x3, 0, 0, 0)\n"
        "11|sysret|read = 7\n"
        "12|syscall|read(0x1, 0x2, 0x3, 0, 0, 0)\n"
        "12|sysret|read = 8\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kernel_and_user_frames_have_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stall_tells_how_many_samples_it_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_that_waits_is_where_it_left_its_cpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_triggers_stack_tells_where_it_waited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sample_at_the_switch_tells_it_before_the_trigger, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_stack_that_was_taken_late_tells_nothing_of_the_wait, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_wait_ends_the_system_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wait_ends_what_a_broken_chain_shows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_fault_ends_no_function, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lost_samples_end_a_segment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(samples_are_missed_behind_other_notices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(throttling_is_a_gap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_sample_for_periods_is_a_gap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_left_out_is_a_gap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_ring_hides_the_past, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_newborn_thread_is_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_newborn_thread_whose_samples_were_overwritten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_newborn_thread_whose_ring_came_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_has_no_ring_is_no_silent_hole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_rings_of_cpus_nobody_lacks_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cpu_that_went_is_a_gap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stack_of_branches_is_a_chain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(foreign_chains_do_no_harm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wake_ups_that_are_missing_are_gaps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(system_calls_are_named_by_the_kind_of_program, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
