/* The model: stall records become the rows that people query. */
#include "model_world.h"
#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

/* A database of a stall at 41.6 ms, of a thread with that name. */
static void store_stall(const struct st_stall_record *r, const char *name)
{
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, name, false);
    recording_at(41600000, 0, 0, 1);
    recording_stall(r);
    world_load(0);
    world_store();
}

static void who_took_the_cpu_is_told(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    r.state = 0;
    r.waker_ctx = 0;
    r.timer_func = 0;
    store_stall(&r, "forwarder");
    assert_string_equal(
        world_query("SELECT reason FROM stalls"),
        "thread 11 \"forwarder\" off-CPU 40.0 ms in recvfrom, preempted by thread 77 \"other\"\n");
}

/* "preempted by thread 77" where a quota kept the thread off would blame a bystander. */
static void who_got_the_cpu_of_a_throttled_thread_is_not_blamed(void **state)
{
    static const char ever[] = "throttled=7";
    struct st_stall_record r = stall();

    (void)state;
    r.state = 0;
    r.waker_ctx = 0;
    r.timer_func = 0;
    r.extra_n = sizeof(ever);
    memcpy(r.extra, ever, sizeof(ever));
    store_stall(&r, "forwarder");
    assert_string_equal(
        world_query("SELECT reason FROM stalls"),
        "thread 11 \"forwarder\" off-CPU 40.0 ms in recvfrom, ready to run while its CPU went "
        "to thread 77 \"other\"\n");
}

static void what_a_quota_held_is_told_so(void **state)
{
    static const char now[] = "throttled=7\0throttled_now=1";
    struct st_stall_record r = stall();

    (void)state;
    r.kind = ST_STALL_RUNQ;
    r.state = 0;
    r.extra_n = sizeof(now);
    memcpy(r.extra, now, sizeof(now));
    store_stall(&r, "forwarder");
    assert_string_equal(
        world_query("SELECT reason FROM stalls"),
        "thread 11 \"forwarder\" runnable without a CPU 40.0 ms in recvfrom, throttled by the CPU "
        "quota of its control group\n");
}

/* Who had it longest of many may have had it for a moment. */
static void how_long_the_cpu_ran_another_is_told_where_that_was_short(void **state)
{
    static const char held[] = "held_ns=400000";
    struct st_stall_record r = stall();

    (void)state;
    r.kind = ST_STALL_RUNQ;
    r.state = 0;
    r.extra_n = sizeof(held);
    memcpy(r.extra, held, sizeof(held));
    store_stall(&r, "forwarder");
    assert_string_equal(
        world_query("SELECT reason FROM stalls"),
        "thread 11 \"forwarder\" runnable without a CPU 40.0 ms in recvfrom while the CPU ran thread "
        "77 \"other\" for 400 us\n");
}

/* Frames of an interpreter are of the stall that fired the snapshot, and of no other. */
static void frames_of_the_language_are_of_the_one_that_fired(void **state)
{
    static const char meta[] = "trigger=offcpu>20ms\0trigger_index=0\0trigger_seq=6\0runtime=Python 3.11.2\0"
                               "frame.0=Store.fetch (/srv/store.py:88)\0frame.1=<module> (/srv/main.py:12)\0"
                               "waker_frame.0=refresh (/srv/store.py:41)\0frame.24=one too many\0";
    struct st_stall_record r = stall();

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "forwarder", false);
    for (r.seq = 5; r.seq < 8; r.seq++) {
        recording_at(41600000 + r.seq, 0, 0, 1);
        recording_stall(&r);
    }
    world_load(0);
    world_store();
    assert_string_equal(
        world_query("SELECT stall_id, key, value FROM stall_attr WHERE key = 'runtime' OR key "
                    "LIKE '%frame.%' ORDER BY 1, 2"),
        "2|frame.0|Store.fetch (/srv/store.py:88)\n"
        "2|frame.1|<module> (/srv/main.py:12)\n"
        "2|runtime|Python 3.11.2\n"
        "2|waker_frame.0|refresh (/srv/store.py:41)\n");
}

/* Of who wakes before the threshold only the context is kept; in older records the number is 0 then, which is
 * that of the softirq HI. */
static void which_softirq_is_told_where_it_is_known(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    r.timer_func = 0;
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "forwarder", false);
    for (r.waker_vec = 0; r.waker_vec < 2; r.waker_vec++, r.seq++) {
        r.wstack_n = 1;
        recording_at(41600000 + r.seq, 0, 0, 1);
        recording_stall(&r);
    }
    r.wstack_n = 0;
    r.waker_vec = 0;
    recording_at(41700000, 0, 0, 1);
    recording_stall(&r);
    r.seq++;
    r.waker_vec = ST_WAKER_VEC_UNKNOWN;
    recording_at(41800000, 0, 0, 1);
    recording_stall(&r);
    world_load(0);
    world_store();
    assert_string_equal(world_query("SELECT waker FROM stalls"),
                        "softirq HI\nsoftirq TIMER\na softirq\na softirq\n");
}

/* As the wait ends another thread may have the CPU already: the record has the number of the one that had it.
 */
static void who_had_the_cpu_keeps_the_name_told_before(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    r.kind = ST_STALL_RUNQ;
    r.syscall = -1;
    r.waker_ctx = 0;
    r.timer_func = 0;
    r.flags |= ST_STALL_ONGOING;
    r.end_ktime = 0;
    r.now_ktime = 20600000;
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "forwarder", false);
    recording_at(21600000, 0, 0, 1);
    recording_stall(&r);
    r.end_ktime = 40500000;
    r.now_ktime = 40600000;
    r.flags = ST_STALL_COMPLETION;
    r.next_comm[0] = '\0';
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    r = stall();
    r.seq = 6;
    r.kind = ST_STALL_RUNQ;
    r.syscall = -1;
    r.waker_ctx = 0;
    r.timer_func = 0;
    r.next_tid = 78;
    r.next_comm[0] = '\0';
    recording_stall(&r);
    world_load(0);
    world_store();
    assert_string_equal(
        world_query("SELECT reason FROM stalls"),
        "thread 11 \"forwarder\" runnable without a CPU 40.0 ms while the CPU ran thread 77 \"other\"\n"
        "thread 11 \"forwarder\" runnable without a CPU 40.0 ms while the CPU ran thread 78\n");
    assert_string_equal(world_query("SELECT value FROM stall_attr WHERE key = 'next'"),
                        "thread 77 \"other\"\nthread 78\n");
}

/* The timer interrupt has no handler's name, and is no "irq 0". */
static void an_interrupt_without_a_handler_has_no_number(void **state)
{
    const struct recording_name names[] = {{0xffffffffc0000040, 0xffffffffc0000000, "hrtimer_wakeup"}};
    struct st_stall_record r = stall();

    (void)state;
    r.waker_ctx = ST_WAKER_IRQ;
    r.waker_vec = 0;
    r.timer_func = 0;
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "forwarder", false);
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    r.seq = 6;
    r.wstack[0] = 0xffffffffc0000140;
    recording_stall(&r);
    r.seq = 7;
    memcpy(r.waker_irq, "nvme0q1", 8);
    r.waker_vec = 30;
    recording_stall(&r);
    recording_names(names, 1);
    world_load(0);
    world_store();
    assert_string_equal(world_query("SELECT waker FROM stall ORDER BY id"),
                        "its own time-out\nan interrupt\nirq 30 nvme0q1\n");
}

/* What a thread waits for with a time-out wakes it out of the timer softirq, in which many others run. */
static void a_time_out_is_the_threads_own(void **state)
{
    const struct recording_name names[] = {{0xffffffffc0000040, 0xffffffffc0000000, "call_timer_fn"},
                                           {0xffffffffc0000140, 0xffffffffc0000100, "process_timeout"},
                                           {0xffffffffc0000240, 0xffffffffc0000200, "tcp_delack_timer"}};
    struct st_stall_record r = stall();

    (void)state;
    r.waker_ctx = ST_WAKER_SOFTIRQ;
    r.waker_vec = 1;
    r.timer_func = 0xffffffffc0000140;
    r.wstack_n = 2;
    r.wstack[0] = 0xffffffffc0000340;
    r.wstack[1] = 0xffffffffc0000040;
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "forwarder", false);
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    r.seq = 6;
    r.timer_func = 0xffffffffc0000240;
    recording_stall(&r);
    r.seq = 7;
    r.kind = ST_STALL_FUNC; /* the record has one of its waits */
    recording_stall(&r);
    recording_names(names, 3);
    world_load(0);
    world_store();
    assert_string_equal(
        world_query("SELECT waker, coalesce(timer, '-') FROM stall ORDER BY id"),
        "its own time-out|-\nsoftirq TIMER|tcp_delack_timer\nsoftirq TIMER|tcp_delack_timer\n");
    assert_string_equal(
        world_query("SELECT reason FROM stall ORDER BY id"),
        "thread 11 \"forwarder\" off-CPU 40.0 ms in recvfrom, woken by its own time-out\n"
        "thread 11 \"forwarder\" off-CPU 40.0 ms in recvfrom, woken by softirq TIMER after timer "
        "tcp_delack_timer\nthread 11 \"forwarder\" in a function 40.0 ms in recvfrom\n");
}

/* A loop that computed all the time and once called read(2) for 3.3 us: neither in read nor ready to run. */
static void what_was_not_measured_is_not_told(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    r.kind = ST_STALL_BUSY;
    r.state = 0;
    r.syscall = 0;
    r.waker_ctx = 0;
    r.wake_ktime = 0;
    r.timer_func = 0;
    r.next_tid = 0;
    r.extra_n = sizeof("syscall_ns=3300");
    memcpy(r.extra, "syscall_ns=3300", r.extra_n);
    store_stall(&r, "redis");
    assert_string_equal(world_query("SELECT state, syscall, waker, reason FROM stalls"),
                        "-|-|-|thread 11 \"forwarder\" away from its event loop 40.0 ms\n");
    assert_string_equal(world_query("SELECT key, value FROM stall_attr ORDER BY key"),
                        "cpu|1\nlongest_syscall|read\nsyscall_ns|3300\n");
}

static void a_way_back_that_was_not_traced_is_told(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    r.flags |= ST_STALL_STACK_LATE | ST_STALL_UNTRACED;
    r.waker_ctx = ST_WAKER_NONE;
    store_stall(&r, "redis");
    assert_string_equal(
        world_query("SELECT s.waker, a.value FROM stalls s, stall_attr a WHERE a.stall_id = s.id "
                    "AND key = 'untraced'"),
        "-|1\n");
}

/* The numbers of 32-bit system calls are others: 45 is recvfrom in one table, brk in the other. */
static void a_32_bit_system_call_has_its_own_name(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    r.flags |= ST_STALL_COMPAT;
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "forwarder", false);
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    r.seq++;
    r.syscall = 60000;
    recording_stall(&r);
    world_load(0);
    world_store();
    assert_string_equal(world_query("SELECT syscall FROM stalls ORDER BY id"),
                        "brk\n32-bit system call 60000\n");
    assert_non_null(strstr(world_query("SELECT reason FROM stalls ORDER BY id"), "40.0 ms in brk"));
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
    world_load(0);
    world_store();
    /* 0 is the start of the stall, which lies before every record: perf time 1,500,000. */
    assert_string_equal(world_query("SELECT value FROM meta WHERE key = 'origin_perf_ns'"), "1500000\n");
    assert_string_equal(
        world_query("SELECT trigger, tid, thread, kind, start_ns, end_ns, duration_ns, threshold_ns, state, "
                    "syscall, waker FROM stalls"),
        "offcpu>20.0 ms|11|forwarder|offcpu|0|40000000|40000000|20000000|sleeping|recvfrom|softirq NET_RX\n");
    assert_string_equal(world_query("SELECT reason FROM stalls"),
                        "thread 11 \"forwarder\" off-CPU 40.0 ms in recvfrom, woken by softirq NET_RX after "
                        "timer tcp_delack_timer\n");
    assert_string_equal(world_query("SELECT wake_ns, timer, fired, waker_thread_id FROM stall"),
                        "39900000|tcp_delack_timer|1|-\n");
    assert_string_equal(world_query("SELECT k.depth, s.name, m.name FROM stall l JOIN stack k ON k.id = "
                                    "l.kernel_stack_id JOIN symbol s ON s.id = "
                                    "k.symbol_id JOIN module m ON m.id = s.module_id ORDER BY 1"),
                        "0|schedule|[kernel]\n1|tcp_recvmsg|[kernel]\n");
    assert_string_equal(world_query("SELECT s.name, m.name, m.kernel FROM stall l JOIN stack k ON k.id = "
                                    "l.waker_stack_id JOIN symbol s ON s.id = "
                                    "k.symbol_id JOIN module m ON m.id = s.module_id"),
                        "helper|[veth]|1\n");
    assert_string_equal(world_query("SELECT key, value FROM stall_attr ORDER BY key"),
                        "arg0|3\narg1|2147418112\narg2|64\narg3|0\narg4|0\narg5|0\ncpu|1\nnext|thread 77 "
                        "\"other\"\npeer|10.0.0.1:80\nret|7\n");
    assert_string_equal(world_query("SELECT typeof(value) FROM stall_attr WHERE key = 'ret'"), "integer\n");
    assert_string_equal(world_query("SELECT value FROM meta WHERE key = 'trigger_stall_id'"), "1\n");
}

static void where_the_waker_was_is_a_stack_of_its_own(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    r.waker_ctx = ST_WAKER_TASK;
    r.waker_pid = 10;
    r.waker_tid = 12;
    r.timer_func = 0;
    r.wstack_n = 4;
    r.wstack[1] = ST_STALL_USER_FRAMES;
    r.wstack[2] = 0x401000;
    r.wstack[3] = 0x402000;
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "forwarder", false);
    recording_comm(10, 12, "helper", false);
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    name_kernel();
    world_load(0);
    world_store();
    assert_string_equal(world_query("SELECT count(*) FROM stall l JOIN stack k ON k.id = l.waker_stack_id"),
                        "1\n");
    assert_string_equal(
        world_query("SELECT k.depth, k.address FROM stall_attr a JOIN stack k ON k.id = a.value "
                    "WHERE a.key = 'waker_user_stack_id' ORDER BY 1"),
        "0|4198400\n1|4202496\n");
}

/* Where the target is stepped no switch tells that a thread lost its CPU outside a system call. */
static void a_wait_that_no_switch_tells_is_off_the_cpu(void **state)
{
    struct st_stall_record ongoing = stall(), r = stall();

    (void)state;
    recording_at(1200000, 10, 11, 1);
    recording_comm(10, 11, "forwarder", false);
    recording_switch(false, false);
    ongoing.flags |= ST_STALL_ONGOING;
    ongoing.state = r.state = 0;
    ongoing.end_ktime = 0;
    ongoing.now_ktime = 20500000;
    r.flags = ST_STALL_COMPLETION;
    recording_at(21500000, 0, 0, 1);
    recording_stall(&ongoing);
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    r.seq++;
    r.kind = ST_STALL_BUSY; /* in which it may have run */
    r.start_ktime = 42000000;
    r.end_ktime = 43000000;
    recording_stall(&r);
    recording_at(51200000, 10, 11, 1);
    recording_switch(true, false);
    recording_at(61200000, 10, 11, 1);
    recording_switch(false, false);
    world_load(0);
    world_store();
    assert_string_equal(world_query("SELECT start_ns, end_ns, preempted FROM offcpu ORDER BY start_ns"),
                        "300000|40300000|1\n50000000|60000000|0\n");
    assert_string_equal(world_query("SELECT start_ns, end_ns, cpu FROM slice ORDER BY start_ns"),
                        "0|300000|1\n40300000|50000000|1\n");
}

/* Where one does, its times stand. */
static void a_wait_that_a_switch_tells_is_told_once(void **state)
{
    struct st_stall_record r = stall();

    (void)state;
    recording_at(1200000, 10, 11, 1);
    recording_comm(10, 11, "forwarder", false);
    recording_switch(false, false);
    recording_at(1510000, 10, 11, 1);
    recording_switch(true, false);
    recording_at(41490000, 10, 11, 1);
    recording_switch(false, false);
    recording_at(41600000, 0, 0, 1);
    recording_stall(&r);
    recording_at(51200000, 10, 11, 1);
    recording_switch(true, false);
    world_load(0);
    world_store();
    assert_string_equal(world_query("SELECT start_ns, end_ns, preempted FROM offcpu ORDER BY start_ns"),
                        "310000|40290000|0\n");
    assert_string_equal(world_query("SELECT start_ns, end_ns, cpu FROM slice ORDER BY start_ns"),
                        "0|310000|1\n40290000|50000000|1\n");
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
    world_load(0);
    world_store();
    assert_string_equal(
        world_query("SELECT start_ns, end_ns, duration_ns, waker, reason FROM stalls"),
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
    world_load(0);
    world_store();
    assert_string_equal(
        world_query("SELECT id, end_ns, fired, user_stack_id IS NOT NULL FROM stall ORDER BY id"),
        "1|40000000|1|1\n2|40000000|0|0\n");
    assert_string_equal(world_query("SELECT value FROM meta WHERE key = 'trigger_stall_id'"), "1\n");
    assert_string_equal(
        world_query("SELECT value FROM stall_attr WHERE stall_id = 1 AND key IN ('ret', 'next_kernel', "
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
    assert_int_equal(st_vec_push(&world_sb->rings, ring), 0);
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
    world_read();
    world_sb->has_pt = true;
    world_sb->pt.clock = (struct dec_clock){.mult = 1, .known = true};
    give_ring(0, 11, -1, 46);
    give_ring(1, -1, 3, 46);
    give_ring(2, 12, -1, 36);
    give_ring(4, 14, -1, 12); /* not even a PSB */
    assert_int_equal(dec_model_new(world_sb, NULL, &world_model, NULL), 0);
    world_store();
    assert_string_equal(
        world_query("SELECT json_extract(value, '$.tid'), json_extract(value, '$.cpu'), "
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
    world_load(0);
    world_store();
    assert_string_equal(
        world_query(
            "SELECT key, value FROM meta WHERE key IN ('trigger', 'trigger_stall_id', 'wall_offset_ns', "
            "'warning', "
            "'snapshot_reason', 'freeze_done_ns', 'recording_end_ns', 'skipped_records') ORDER BY key"),
        "freeze_done_ns|50000000\nrecording_end_ns|50000000\nskipped_records|0\nsnapshot_reason|trigger\n"
        "trigger|offcpu>20ms\ntrigger_stall_id|1\nwall_offset_ns|-7\nwarning|one\ntwo\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_took_the_cpu_is_told, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(who_got_the_cpu_of_a_throttled_thread_is_not_blamed, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(what_a_quota_held_is_told_so, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(how_long_the_cpu_ran_another_is_told_where_that_was_short,
                                        world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(frames_of_the_language_are_of_the_one_that_fired, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(which_softirq_is_told_where_it_is_known, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(who_had_the_cpu_keeps_the_name_told_before, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(a_time_out_is_the_threads_own, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(an_interrupt_without_a_handler_has_no_number, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(what_was_not_measured_is_not_told, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_way_back_that_was_not_traced_is_told, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(a_32_bit_system_call_has_its_own_name, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_stall_tells_its_story, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(where_the_waker_was_is_a_stack_of_its_own, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(a_wait_that_no_switch_tells_is_off_the_cpu, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(a_wait_that_a_switch_tells_is_told_once, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(an_ongoing_stall_has_no_end, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_completion_completes_its_row, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(rings_tell_how_far_past_the_trigger_they_went, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(the_recorder_names_the_stall_that_fired, world_set_up,
                                        world_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
