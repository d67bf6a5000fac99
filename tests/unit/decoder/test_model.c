/* The model: side-band, branches and stall records become the rows that people query. */
#include "recording.h"

#include "decoder/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct pd_reader *reader;
static struct dec_images *images;
static struct dec_sideband *sb;
static struct dec_model *model;
static struct dec_flow_counts counts;
static char path[64];
static sqlite3 *db;

static int set_up(void **state)
{
    (void)state;
    recording_begin();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sqlite3_close(db);
    db = NULL;
    dec_model_free(model);
    model = NULL;
    dec_sideband_free(sb);
    sb = NULL;
    dec_images_free(images);
    images = NULL;
    pd_reader_close(reader);
    reader = NULL;
    recording_remove();
    unlink(path);
    return 0;
}

static void read_back(void)
{
    struct st_error err = {0};

    recording_end();
    if (pd_reader_open(recording_path(), &reader, &err) || dec_images_new(NULL, &images, &err) ||
        dec_sideband_read(reader, images, &sb, &err))
        fail_msg("%s", err.text);
}

/* Reads the recording; `tid` > 0: gives it a ring of that thread, -2: one of CPU 0. */
static void load(int32_t tid)
{
    struct st_error err = {0};

    read_back();
    if (tid)
        assert_int_equal(
            st_vec_push(&sb->rings, (struct dec_ring){.tid = tid > 0 ? tid : -1, .cpu = tid > 0 ? -1 : 0}),
            0);
    if (dec_model_new(sb, NULL, &model, &err))
        fail_msg("%s", err.text);
}

static void emit(int32_t tid, uint64_t time, enum dec_kind kind, uint64_t from, uint64_t to, uint16_t flags)
{
    struct dec_stream_info info = {.pid = 10, .tid = tid};
    struct dec_event e = {.time = time,
                          .from = from,
                          .to = to,
                          .kind = (uint16_t)kind,
                          .cpu = 0,
                          .flags = (uint16_t)(flags | DEC_TAKEN | DEC_TIME_EXACT | 5 << DEC_LENGTH_SHIFT)};

    if (kind == DEC_GAP)
        e.arg = from;
    assert_int_equal(dec_model_emit(model, &info, &e, 1, kind == DEC_GAP ? "so it is" : NULL), 0);
}

/* Writes the database and opens it. */
static void store(void)
{
    struct dec_provenance from = {.reader = reader, .snapshot = "test", .flow = &counts};
    struct st_error err = {0};
    struct tdb_writer *w;

    snprintf(path, sizeof(path), "/tmp/model-%d.db", getpid());
    if (dec_model_end(model, &err) || tdb_writer_open(path, &w, &err) ||
        dec_model_write(model, w, &from, &err) || tdb_writer_commit(w, true, &err) ||
        tdb_open(path, &db, &err))
        fail_msg("%s", err.text);
}

/* The rows of a query: columns with '|', rows with '\n'; NULL is "-". */
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

/* Perf time is 1,000,000 ahead of CLOCK_MONOTONIC here. */
static struct st_stall_record stall(void)
{
    struct st_stall_record r = {.magic = ST_STALL_MAGIC,
                                .version = ST_STALL_VERSION,
                                .kind = ST_STALL_OFFCPU,
                                .flags = ST_STALL_FIRED,
                                .seq = 5,
                                .start_ktime = 500000,
                                .end_ktime = 40500000,
                                .now_ktime = 40600000,
                                .measured_ns = 40000000,
                                .threshold_ns = 20000000,
                                .pid = 10,
                                .tid = 11,
                                .comm = "forwarder",
                                .state = 1,
                                .syscall = 45,
                                .syscall_args = {3, 0x7fff0000, 64},
                                .cpu = 1,
                                .waker_ctx = ST_WAKER_SOFTIRQ,
                                .waker_vec = 3,
                                .next_tid = 77,
                                .next_comm = "other",
                                .wake_ktime = 40400000,
                                .timer_func = 0xffffffff81000100,
                                .kstack_n = 2,
                                .wstack_n = 1,
                                .kstack = {0xffffffff81000020, 0xffffffff81000040},
                                .wstack = {0xffffffffc0000040},
                                .extra_n = 22,
                                .extra = "peer=10.0.0.1:80\0ret=7"};
    return r;
}

static void name_kernel(void)
{
    const struct recording_name names[] = {{0xffffffff81000020, 0xffffffff81000000, "schedule"},
                                           {0xffffffff81000040, 0xffffffff81000030, "tcp_recvmsg"},
                                           {0xffffffff81000100, 0xffffffff81000100, "tcp_delack_timer"},
                                           {0xffffffffc0000040, 0xffffffffc0000000, "helper [veth]"}};

    recording_names(names, 4);
}

static void who_took_the_cpu_is_told(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    r.state = 0;
    r.waker_ctx = 0;
    r.timer_func = 0;
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "forwarder", false);
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    load(0);
    store();
    assert_string_equal(
        query("SELECT reason FROM stalls"),
        "thread 11 \"forwarder\" off-CPU 40.0 ms in recvfrom, preempted by thread 77 \"other\"\n");
}

static void a_stall_tells_its_story(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "forwarder", false);
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    name_kernel();
    load(0);
    store();
    /* 0 is the start of the stall, which lies before every record: perf time 1,500,000. */
    assert_string_equal(query("SELECT value FROM meta WHERE key = 'origin_perf_ns'"), "1500000\n");
    assert_string_equal(
        query("SELECT trigger, tid, thread, kind, start_ns, end_ns, duration_ns, threshold_ns, state, "
              "syscall, waker FROM stalls"),
        "offcpu>20.0 ms|11|forwarder|offcpu|0|40000000|40000000|20000000|sleeping|recvfrom|softirq NET_RX\n");
    assert_string_equal(query("SELECT reason FROM stalls"),
                        "thread 11 \"forwarder\" off-CPU 40.0 ms in recvfrom, woken by softirq NET_RX after "
                        "timer tcp_delack_timer\n");
    assert_string_equal(query("SELECT wake_ns, timer, fired, waker_thread_id FROM stall"),
                        "39900000|tcp_delack_timer|1|-\n");
    assert_string_equal(query("SELECT k.depth, s.name, m.name FROM stall l JOIN stack k ON k.id = "
                              "l.kernel_stack_id JOIN symbol s ON s.id = "
                              "k.symbol_id JOIN module m ON m.id = s.module_id ORDER BY 1"),
                        "0|schedule|[kernel]\n1|tcp_recvmsg|[kernel]\n");
    assert_string_equal(query("SELECT s.name, m.name, m.kernel FROM stall l JOIN stack k ON k.id = "
                              "l.waker_stack_id JOIN symbol s ON s.id = "
                              "k.symbol_id JOIN module m ON m.id = s.module_id"),
                        "helper|[veth]|1\n");
    assert_string_equal(query("SELECT key, value FROM stall_attr ORDER BY key"),
                        "arg0|3\narg1|2147418112\narg2|64\narg3|0\narg4|0\narg5|0\ncpu|1\nnext|thread 77 "
                        "\"other\"\npeer|10.0.0.1:80\nret|7\n");
    assert_string_equal(query("SELECT typeof(value) FROM stall_attr WHERE key = 'ret'"), "integer\n");
    assert_string_equal(query("SELECT value FROM meta WHERE key = 'trigger_stall_id'"), "1\n");
}

static void an_ongoing_stall_has_no_end(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    r.flags |= ST_STALL_ONGOING;
    r.end_ktime = 0;
    r.wake_ktime = 0;
    r.waker_ctx = ST_WAKER_NONE;
    r.timer_func = 0;
    r.now_ktime = 20500000;
    r.measured_ns = 20000000;
    recording_at(21500000, 0, 0, 1);
    recording_stall(&r);
    recording_at(101500000, 10, 10, 0); /* the recording went on for 80 ms */
    recording_comm(10, 10, "x", false);
    load(0);
    store();
    assert_string_equal(
        query("SELECT start_ns, end_ns, duration_ns, waker, reason FROM stalls"),
        "0|-|100000000|-|thread 11 \"forwarder\" off-CPU 100 ms in recvfrom, still going on\n");
}

static void a_completion_completes_its_row(void **state)
{
    struct st_stall_record ongoing = stall(), completion = stall(), other = stall();

    (void)state;
    ongoing.flags |= ST_STALL_ONGOING;
    ongoing.end_ktime = 0;
    ongoing.ustack_n = 1;
    ongoing.ustack[0] = 0x1234;
    ongoing.now_ktime = 20500000;
    memcpy(ongoing.extra, "next_kernel=1\0then=1", 21); /* looked up as it fired, and what was so then */
    ongoing.extra_n = 21;
    completion.flags = ST_STALL_COMPLETION;
    other.seq = 6;
    other.flags = 0;
    recording_at(21500000, 0, 0, 1);
    recording_stall(&ongoing);
    recording_at(41600000, 0, 0, 1);
    recording_stall(&other);
    recording_stall(&completion);
    load(0);
    store();
    assert_string_equal(query("SELECT id, end_ns, fired, user_stack_id IS NOT NULL FROM stall ORDER BY id"),
                        "1|40000000|1|1\n2|40000000|0|0\n");
    assert_string_equal(query("SELECT value FROM meta WHERE key = 'trigger_stall_id'"), "1\n");
    assert_string_equal(
        query("SELECT value FROM stall_attr WHERE stall_id = 1 AND key IN ('ret', 'next_kernel', "
              "'then') ORDER BY key"),
        "1\n7\n");
}

/* PSB, TSC, PSBEND; TNT; TSC, TNT; TSC, two TNT: a trace that is told the time at 41.0, 41.5 and 41.7 ms. */
static const uint8_t timed_trace[] = {
    0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, /* PSB */
    0x19, 0x40, 0x9c, 0x71, 0x02, 0x00, 0x00, 0x00, 0x02, 0x23, 0x06,                               /* 41.0 */
    0x19, 0x60, 0x3d, 0x79, 0x02, 0x00, 0x00, 0x00, 0x06,                                           /* 41.5 */
    0x19, 0xa0, 0x4a, 0x7c, 0x02, 0x00, 0x00, 0x00, 0x06, 0x06};                                    /* 41.7 */

static void give_ring(uint32_t idx, int32_t tid, int32_t cpu, size_t bytes)
{
    struct dec_ring ring = {.idx = idx, .tid = tid, .cpu = cpu};

    assert_int_equal(st_vec_push(&ring.pieces, (struct dec_piece){timed_trace, bytes, 0, false}), 0);
    assert_int_equal(st_vec_push(&sb->rings, ring), 0);
}

/* The stall that fired ended at 41.55 ms. */
static void rings_tell_how_far_past_the_trigger_they_went(void **state)
{
    static const char strings[] =
        "trigger_seq=5\0trigger_index=0\0"
        "ring.0=tid=11 cpu=-1 since=1 offset=0 size=46 truncated=0 in_kernel=1 stopped=45000000\0"
        "ring.1=tid=-1 cpu=3 since=1 offset=0 size=46 truncated=0 in_kernel=0 stopped=42600000\0"
        "ring.2=tid=12 cpu=-1 since=1 offset=0 size=36 truncated=0 in_kernel=0 stopped=42700000\0"
        "ring.3=tid=13 cpu=-1 since=1 offset=0 size=0 truncated=0 in_kernel=0 stopped=42800000\0"
        "ring.4=tid=14 cpu=-1 since=1 offset=0 size=12 truncated=0 in_kernel=0 stopped=0";
    struct st_stall_record r = stall();

    (void)state;
    r.end_ktime = 40550000;
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    recording_meta(strings, sizeof(strings));
    read_back();
    sb->has_pt = true;
    sb->pt.clock = (struct dec_clock){.mult = 1, .known = true};
    give_ring(0, 11, -1, 46);
    give_ring(1, -1, 3, 46);
    give_ring(2, 12, -1, 36);
    give_ring(4, 14, -1, 12); /* not even a PSB */
    assert_int_equal(dec_model_new(sb, NULL, &model, NULL), 0);
    store();
    assert_string_equal(query("SELECT json_extract(value, '$.tid'), json_extract(value, '$.cpu'), "
                              "json_extract(value, '$.in_kernel'), "
                              "json_extract(value, '$.after_ns'), json_extract(value, '$.after_bytes') FROM "
                              "json_each((SELECT value FROM meta WHERE key = 'ring_stops'))"),
                        "11|-|1|150000|11\n" /* from the packet on that is told 41.5 ms */
                        "-|3|0|1050000|11\n"
                        "12|-|0|1150000|0\n" /* its last packet is of before */
                        "13|-|0|1250000|0\n"
                        "14|-|0|-|-\n");
}

static void the_recorder_names_the_stall_that_fired(void **state)
{
    static const char strings[] =
        "trigger=offcpu>20ms\0trigger_index=1\0trigger_seq=5\0wall_offset_ns=-7\0reason=trigger\0"
        "freeze_done=51500000\0warning=one\0warning=two\0unknown=x";
    struct st_stall_record first = stall(), second = stall();

    (void)state;
    first.trigger = 1;
    second.seq = 6;
    second.trigger = 1;
    recording_at(41600000, 0, 0, 1);
    recording_stall(&first);
    recording_stall(&second);
    recording_meta(strings, sizeof(strings));
    load(0);
    store();
    assert_string_equal(
        query("SELECT key, value FROM meta WHERE key IN ('trigger', 'trigger_stall_id', 'wall_offset_ns', "
              "'warning', "
              "'snapshot_reason', 'freeze_done_ns', 'recording_end_ns', 'skipped_records') ORDER BY key"),
        "freeze_done_ns|50000000\nrecording_end_ns|50000000\nskipped_records|0\nsnapshot_reason|trigger\n"
        "trigger|offcpu>20ms\ntrigger_stall_id|1\nwall_offset_ns|-7\nwarning|one\ntwo\n");
}

static void a_vdso_in_the_snapshot_is_used(void **state)
{
    const struct dec_thread *t;
    uint8_t byte;

    (void)state;
    recording_at(1000, 10, 10, 0);
    recording_mmap(10, 0x7000, 0x1000, 0, "[vdso]"); /* the record of its bytes stands behind it */
    recording_mmap(12, 0x9000, 0x1000, 0, "[vdso]");
    recording_comm(10, 10, "t", false);
    recording_comm(12, 12, "t", false);
    recording_vdso(10, 0x7000, "\xc3\x90", 2);
    load(0);
    t = dec_sideband_thread(sb, 10, -1, 1000);
    assert_int_equal(dec_space_read(t->process->space, 2000, 0x7000, &byte, 1), 1);
    assert_int_equal(byte, 0xc3);
    t = dec_sideband_thread(sb, 12, -1, 1000); /* shared: written once */
    assert_int_equal(dec_space_read(t->process->space, 2000, 0x9000, &byte, 1), 1);
    assert_int_equal(byte, 0xc3);
}

static void calls_and_their_time_off_the_cpu(void **state)
{
    (void)state;
    recording_at(1000, 10, 11, 2);
    recording_comm(10, 11, "t", false);
    recording_at(1300, 10, 11, 2);
    recording_switch(true, false);
    recording_at(1800, 10, 11, 2);
    recording_switch(false, false);
    recording_at(3000, 10, 11, 2);
    recording_switch(true, false);
    load(11);
    emit(11, 1100, DEC_ENABLE, 0, 0x1000, 0);
    emit(11, 1200, DEC_FAR_CALL, 0x1010, 0, 0);
    emit(11, 1200, DEC_DISABLE, 0x1010, 0, 0);
    emit(11, 1900, DEC_ENABLE, 0, 0x1015, DEC_RESUMED);
    emit(11, 2000, DEC_JUMP, 0x1020, 0x1030, 0);
    store();
    assert_string_equal(
        query("SELECT id, function, module, depth, parent_id, start_ns, end_ns, self_ns, kernel, flags FROM "
              "calls ORDER BY id"),
        "1|[unknown]|[unknown]|0|-|100|1000|200|0|3\n2|[syscall]|[kernel]|1|1|200|900|200|1|0\n");
    assert_string_equal(query("SELECT start_ns, end_ns, preempted, call_id FROM offcpu"), "300|800|0|2\n");
    assert_string_equal(query("SELECT cpu, start_ns, end_ns FROM slice ORDER BY start_ns"),
                        "2|0|300\n2|800|2000\n");
    assert_string_equal(query("SELECT tid, name, process, calls FROM threads"), "11|t|t|2\n");
}

static void what_is_missing_is_a_row(void **state)
{
    (void)state;
    recording_at(1000, 10, 10, 0);
    recording_comm(10, 10, "leader", false);
    recording_at(2000, 10, 11, 0);
    recording_comm(10, 11, "t", false);
    recording_itrace(10, 11);
    recording_at(9000, 10, 11, 0);
    recording_lost(4);
    load(11);
    emit(11, 2100, DEC_ENABLE, 0, 0x1000, 0);
    emit(11, 2200, DEC_GAP, DEC_GAP_OVERFLOW, 0, 0);
    emit(11, 2500, DEC_ENABLE, 0, 0x1000, 0);
    emit(11, 2600, DEC_GAP, DEC_GAP_TRUNCATED, 0, 0);
    store();
    assert_string_equal(query("SELECT tid, g.start_ns, g.end_ns, reason, detail FROM gaps g JOIN threads t "
                              "ON t.id = g.thread_id ORDER BY 2"),
                        "11|0|1000|not attached|the thread ran before its recording began\n"
                        "11|1200|1500|overflow|so it is\n"
                        "11|1600|8000|truncated|so it is\n"
                        "11|8000|8000|lost|4 side-band records did not fit into the kernel's buffer\n");
}

static void an_overwritten_ring_hides_the_past(void **state)
{
    (void)state;
    recording_at(1000, 10, 11, 0);
    recording_comm(10, 11, "t", false);
    load(11);
    emit(11, 5000, DEC_GAP, DEC_GAP_OVERWRITTEN, 0, 0);
    emit(11, 5000, DEC_ENABLE, 0, 0x1000, 0);
    emit(11, 5100, DEC_JUMP, 0x1008, 0x1000, 0);
    store();
    assert_string_equal(query("SELECT start_ns, end_ns, reason FROM gaps"), "0|4000|overwritten\n");
}

/* A loss in the ring of a CPU while two threads took turns there: the stack of neither goes on across it. */
static void a_loss_of_a_cpu_concerns_all_who_ran_there(void **state)
{
    (void)state;
    recording_at(1000, 10, 10, 0);
    recording_switch(false, false);
    recording_at(2000, 10, 10, 0);
    recording_switch(true, false);
    recording_at(2000, 10, 11, 0);
    recording_switch(false, false);
    recording_at(3000, 10, 11, 0);
    recording_switch(true, false);
    recording_at(3000, 10, 10, 0);
    recording_switch(false, false);
    recording_at(4000, 10, 10, 0);
    recording_switch(true, false);
    load(-2);
    emit(11, 900, DEC_ENABLE, 0, 0x2000, 0);
    emit(11, 910, DEC_DISABLE, 0x2010, 0, DEC_ASYNC_DISABLE);
    emit(10, 1100, DEC_ENABLE, 0, 0x1000, 0);
    emit(10, 1200, DEC_GAP, DEC_GAP_OVERFLOW, 0, 0);
    emit(10, 3500, DEC_ENABLE, 0, 0x1000, 0);
    emit(10, 3600, DEC_JUMP, 0x1008, 0x1000, 0);
    store();
    assert_string_equal(
        query("SELECT tid, cpu, g.start_ns + o.value, g.end_ns + o.value, reason FROM gaps g JOIN threads t "
              "ON t.id = g.thread_id, "
              "(SELECT value FROM meta WHERE key = 'origin_perf_ns') o WHERE reason = 'overflow' ORDER BY 1"),
        "10|0|1200|3500|overflow\n11|0|2000|3000|overflow\n");
    /* Two segments of thread 10; the one of thread 11 ends where it was hidden. */
    assert_string_equal(
        query("SELECT tid, function, start_ns + o.value, end_ns + o.value FROM calls, "
              "(SELECT value FROM meta WHERE key = 'origin_perf_ns') o ORDER BY id"),
        "10|[unknown]|1100|1200\n10|[unknown]|3500|3600\n11|[unknown]|900|2000\n11|[interrupt]|910|2000\n");
}

/* CPU 0 has a ring and went; CPU 7 came and never had one. */
static void a_cpu_that_went_is_a_gap_from_its_last_branch_on(void **state)
{
    static const char meta[] = "unseen_cpus=0,7\0";

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    recording_at(1000, 10, 10, 0);
    recording_switch(false, false);
    recording_at(4000, 10, 10, 1);
    recording_switch(true, false);
    load(-2);
    emit(10, 1100, DEC_ENABLE, 0, 0x1000, 0);
    emit(10, 2500, DEC_JUMP, 0x1008, 0x1000, 0);
    store();
    assert_string_equal(query("SELECT cpu, g.start_ns + o.value, g.end_ns + o.value FROM gaps g, (SELECT "
                              "value FROM meta WHERE key = 'origin_perf_ns') o WHERE reason = 'cpu not "
                              "recorded' ORDER BY cpu"),
                        "0|2500|4000\n7|1000|4000\n");
}

static void a_thread_that_changes_cpus_is_put_together(void **state)
{
    (void)state;
    recording_at(1000, 10, 10, 0);
    recording_comm(10, 10, "t", false);
    load(-2);
    assert_int_equal(st_vec_push(&sb->rings, (struct dec_ring){.tid = -1, .cpu = 1}), 0);
    dec_model_free(model);
    assert_int_equal(dec_model_new(sb, NULL, &model, NULL), 0);
    emit(10, 1000, DEC_ENABLE, 0, 0x1000, 0);
    emit(10, 1100, DEC_FAR_CALL, 0x1010, 0, 0);
    emit(10, 1100, DEC_DISABLE, 0x1010, 0, 0);
    emit(10, 3000, DEC_ENABLE, 0, 0x1025, DEC_RESUMED);
    emit(10, 3100, DEC_JUMP, 0x1030, 0x1000, 0);
    struct dec_stream_info info = {.pid = 10, .tid = 10, .ring = 1};
    const struct dec_event second[] = {
        {.time = 2000, .to = 0x1015, .kind = DEC_ENABLE, .flags = DEC_TIME_EXACT},
        {.time = 2100, .from = 0x1020, .kind = DEC_FAR_CALL, .flags = DEC_TIME_EXACT | 5 << DEC_LENGTH_SHIFT},
        {.time = 2100, .from = 0x1020, .kind = DEC_DISABLE, .flags = DEC_TIME_EXACT},
    };
    assert_int_equal(dec_model_emit(model, &info, second, 3, NULL), 0);
    store();
    assert_string_equal(query("SELECT function, start_ns, end_ns, depth FROM calls ORDER BY id"),
                        "[unknown]|0|2100|0\n[syscall]|100|1000|1\n[syscall]|1100|2000|1\n");
}

static void what_a_program_wrote_is_a_mark(void **state)
{
    struct dec_stream_info info = {.pid = 10, .tid = 11};
    const struct dec_event e = {.time = 1500, .arg = 0xabc, .kind = DEC_PTWRITE, .cpu = 2};

    (void)state;
    recording_at(1000, 10, 11, 0);
    recording_comm(10, 11, "prog", true);
    load(11);
    assert_int_equal(dec_model_emit(model, &info, &e, 1, NULL), 0);
    store();
    assert_string_equal(query("SELECT time_ns, name, detail FROM mark ORDER BY time_ns"),
                        "0|exec|prog\n500|ptwrite|0xabc\n");
}

/* Counts come to the call that runs and to those it is called from; what is no event of the stacks' loses
 * none.
 */
static void count_calls(int ring)
{
    static const struct {
        enum dec_kind kind;

        uint64_t from, to, instructions, cycles;
    } steps[] = {
        {DEC_ENABLE, 0, 0x1000, 0, 0},         {DEC_CALL, 0x1010, 0x2000, 10, 20},
        {DEC_COND_JUMP, 0x2004, 0x2000, 3, 3}, {DEC_COND_JUMP, 0x2008, 0x200a, 4, 4}, /* not taken */
        {DEC_RETURN, 0x2010, 0x1015, 5, 50},   {DEC_PTWRITE, 0, 0, 99, 99},
        {DEC_FAR_CALL, 0x1020, 0, 6, 6},       {DEC_DISABLE, 0x1020, 0, 0, 0},
        {DEC_ENABLE, 0, 0x1025, 0, 0},         {DEC_CALL, 0x1030, 0x1050, 7, 7},
        {DEC_RETURN, 0x1060, 0x1035, 8, 8},
    };
    struct dec_stream_info info = {.pid = 10, .tid = 11};

    recording_at(1000, 10, 11, 0);
    recording_comm(10, 11, "t", false);
    load(ring);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct dec_event e = {.time = 1000 + 100 * i,
                              .from = steps[i].from,
                              .to = steps[i].to,
                              .kind = (uint16_t)steps[i].kind,
                              .flags = DEC_TIME_EXACT | 5 << DEC_LENGTH_SHIFT,
                              .arg = steps[i].cycles << 32 | steps[i].instructions};

        e.flags |= steps[i].to != 0x200a ? DEC_TAKEN : 0;
        assert_int_equal(dec_model_emit(model, &info, &e, 1, NULL), 0);
    }
    store();
    assert_string_equal(query("SELECT depth, function, instructions, cycles FROM calls ORDER BY id"),
                        "0|[unknown]|43|98\n1|[unknown]|12|57\n1|[syscall]|-|-\n1|[unknown]|8|8\n");
    assert_string_equal(query("PRAGMA integrity_check"), "ok\n");
}

static void instructions_and_cycles_of_calls(void **state)
{
    (void)state;
    count_calls(11);
}

static void instructions_and_cycles_by_the_ring_of_a_cpu(void **state)
{
    (void)state;
    count_calls(-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stall_tells_its_story, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_took_the_cpu_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_ongoing_stall_has_no_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_completion_completes_its_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_recorder_names_the_stall_that_fired, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_vdso_in_the_snapshot_is_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_and_their_time_off_the_cpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_missing_is_a_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_overwritten_ring_hides_the_past, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_loss_of_a_cpu_concerns_all_who_ran_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cpu_that_went_is_a_gap_from_its_last_branch_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_that_changes_cpus_is_put_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rings_tell_how_far_past_the_trigger_they_went, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_program_wrote_is_a_mark, set_up, tear_down),
        cmocka_unit_test_setup_teardown(instructions_and_cycles_of_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(instructions_and_cycles_by_the_ring_of_a_cpu, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
