/* The model: side-band and branches become the rows that people query. */
#include "model_world.h"
#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_program_has_its_command_line(void **state)
{
    static const char strings[] =
        "command.10=postgres: "
        "checkpointer\0exe.10=/usr/lib/postgres\0build_id.10=49ec\0command.10=other\0command.x=y";

    (void)state;
    recording_at(2000000, 10, 11, 0);
    recording_comm(10, 11, "postgres", false);
    recording_meta(strings, sizeof(strings));
    world_load(0);
    world_store();
    assert_string_equal(world_query("SELECT key, value FROM meta WHERE key LIKE 'command.%' OR key LIKE "
                                    "'exe.%' OR key LIKE 'build_id.%' ORDER BY key"),
                        "build_id.10|49ec\ncommand.10|postgres: checkpointer\nexe.10|/usr/lib/postgres\n");
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
    world_load(0);
    t = dec_sideband_thread(world_sb, 10, -1, 1000);
    assert_int_equal(dec_space_read(t->process->space, 2000, 0x7000, &byte, 1), 1);
    assert_int_equal(byte, 0xc3);
    t = dec_sideband_thread(world_sb, 12, -1, 1000); /* shared: written once */
    assert_int_equal(dec_space_read(t->process->space, 2000, 0x9000, &byte, 1), 1);
    assert_int_equal(byte, 0xc3);
}

/* Where programs of 32 and of 64 bits run, each kind has a vdso of its own. */
static void a_vdso_is_that_of_the_programs_kind(void **state)
{
    static const uint8_t wide[] = "\177ELF\2wide", narrow[] = "\177ELF\1narrow";
    const struct dec_thread *t;
    uint8_t class;

    (void)state;
    recording_at(1000, 10, 10, 0);
    recording_mmap(10, 0x7ffff7fc1000, 0x1000, 0, "[vdso]");
    recording_mmap(11, 0xf7fc4000, 0x1000, 0, "[vdso]");
    recording_mmap(12, 0xf7fc8000, 0x1000, 0, "[vdso]"); /* not the one that was written */
    for (uint32_t pid = 10; pid <= 12; pid++)
        recording_comm(pid, pid, "t", false);
    recording_vdso(10, 0x7ffff7fc1000, wide, sizeof(wide));
    recording_vdso(11, 0xf7fc4000, narrow, sizeof(narrow));
    world_load(0);
    for (int pid = 10; pid <= 12; pid++) {
        uint64_t at = pid == 10 ? 0x7ffff7fc1000 : pid == 11 ? 0xf7fc4000 : 0xf7fc8000;

        t = dec_sideband_thread(world_sb, pid, -1, 1000);
        assert_int_equal(dec_space_read(t->process->space, 2000, at + 4, &class, 1), 1);
        assert_int_equal(class, pid == 10 ? 2 : 1);
    }
}

/* A program of 32 bits whose vdso nobody wrote down has no code there: that of 64-bit programs is other code.
 */
static void a_missing_vdso_is_not_that_of_the_other_kind(void **state)
{
    static const uint8_t wide[] = "\177ELF\2wide";
    const struct dec_mapping *mapping;
    const struct dec_thread *t;
    uint8_t class;

    (void)state;
    recording_at(1000, 10, 10, 0);
    recording_mmap(10, 0x7ffff7fc1000, 0x1000, 0, "[vdso]");
    recording_mmap(11, 0xf7fc4000, 0x1000, 0, "[vdso]");
    recording_comm(10, 10, "t", false);
    recording_comm(11, 11, "t", false);
    recording_vdso(10, 0x7ffff7fc1000, wide, sizeof(wide));
    world_load(0);
    t = dec_sideband_thread(world_sb, 11, -1, 1000);
    assert_int_equal(dec_space_read(t->process->space, 2000, 0xf7fc4004, &class, 1), 0);
    mapping = dec_space_find(t->process->space, 2000, 0xf7fc4004);
    assert_non_null(mapping);
    assert_string_equal(mapping->image->name, "[vdso32]");
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
    world_load(11);
    world_emit(11, 1100, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(11, 1200, DEC_FAR_CALL, 0x1010, 0, 0);
    world_emit(11, 1200, DEC_DISABLE, 0x1010, 0, 0);
    world_emit(11, 1900, DEC_ENABLE, 0, 0x1015, DEC_RESUMED);
    world_emit(11, 2000, DEC_JUMP, 0x1020, 0x1030, 0);
    world_store();
    assert_string_equal(
        world_query(
            "SELECT id, function, module, depth, parent_id, start_ns, end_ns, self_ns, kernel, flags FROM "
            "calls ORDER BY id"),
        "1|[unknown]|[unknown]|0|-|100|1000|200|0|3\n2|[syscall]|[kernel]|1|1|200|900|200|1|0\n");
    assert_string_equal(world_query("SELECT start_ns, end_ns, preempted, call_id FROM offcpu"),
                        "300|800|0|2\n");
    assert_string_equal(world_query("SELECT cpu, start_ns, end_ns FROM slice ORDER BY start_ns"),
                        "2|0|300\n2|800|2000\n");
    assert_string_equal(world_query("SELECT tid, name, process, calls FROM threads"), "11|t|t|2\n");
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
    world_load(11);
    world_emit(11, 2100, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(11, 2200, DEC_GAP, DEC_GAP_OVERFLOW, 0, 0);
    world_emit(11, 2500, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(11, 2600, DEC_GAP, DEC_GAP_TRUNCATED, 0, 0);
    world_store();
    assert_string_equal(
        world_query("SELECT tid, g.start_ns, g.end_ns, reason, detail FROM gaps g JOIN threads t "
                    "ON t.id = g.thread_id ORDER BY 2"),
        "11|0|1000|not attached|the thread ran before its recording began\n"
        "11|1200|1500|overflow|so it is\n"
        "11|1600|8000|truncated|so it is\n"
        "11|8000|8000|lost|4 side-band records did not fit into the kernel's buffer\n");
}

/* What an earlier snapshot cost: thread 11 ran meanwhile; while that of the second one was taken it had no
 * CPU. */
static void a_pause_is_a_gap_of_who_ran(void **state)
{
    static const char meta[] = "pause.0=stopped=1400 done=1500 resumed=1600\0"
                               "pause.1=stopped=2400 done=2500 resumed=2600\0";

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    recording_at(1000, 10, 11, 0);
    recording_switch(false, false);
    recording_at(2200, 10, 11, 0);
    recording_switch(true, false);
    recording_at(2700, 10, 11, 0);
    recording_switch(false, false);
    recording_at(3000, 10, 11, 0);
    recording_switch(true, false);
    world_load(11);
    world_emit(11, 1100, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(11, 1300, DEC_JUMP, 0x1008, 0x1000, 0);
    world_emit(11, 1700, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(11, 2100, DEC_DISABLE, 0x1008, 0, 0);
    world_emit(11, 2800, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(11, 2900, DEC_JUMP, 0x1008, 0x1000, 0);
    world_store();
    assert_string_equal(world_query("SELECT g.start_ns + o.value, g.end_ns + o.value, detail FROM gaps g, "
                                    "(SELECT value FROM meta WHERE key = 'origin_perf_ns') o "
                                    "WHERE reason = 'paused'"),
                        "1400|1700|stopped for an earlier snapshot\n");
}

static void an_overwritten_ring_hides_the_past(void **state)
{
    (void)state;
    recording_at(1000, 10, 11, 0);
    recording_comm(10, 11, "t", false);
    world_load(11);
    world_emit(11, 5000, DEC_GAP, DEC_GAP_OVERWRITTEN, 0, 0);
    world_emit(11, 5000, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(11, 5100, DEC_JUMP, 0x1008, 0x1000, 0);
    world_store();
    assert_string_equal(world_query("SELECT start_ns, end_ns, reason FROM gaps"), "0|4000|overwritten\n");
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
    world_load(-2);
    world_emit(11, 900, DEC_ENABLE, 0, 0x2000, 0);
    world_emit(11, 910, DEC_DISABLE, 0x2010, 0, DEC_ASYNC_DISABLE);
    world_emit(10, 1100, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(10, 1200, DEC_GAP, DEC_GAP_OVERFLOW, 0, 0);
    world_emit(10, 3500, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(10, 3600, DEC_JUMP, 0x1008, 0x1000, 0);
    world_store();
    assert_string_equal(
        world_query(
            "SELECT tid, cpu, g.start_ns + o.value, g.end_ns + o.value, reason FROM gaps g JOIN threads t "
            "ON t.id = g.thread_id, "
            "(SELECT value FROM meta WHERE key = 'origin_perf_ns') o WHERE reason = 'overflow' ORDER BY 1"),
        "10|0|1200|3500|overflow\n11|0|2000|3000|overflow\n");
    /* Two segments of thread 10; the one of thread 11 ends where it was hidden. */
    assert_string_equal(
        world_query("SELECT tid, function, start_ns + o.value, end_ns + o.value FROM calls, "
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
    world_load(-2);
    world_emit(10, 1100, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(10, 2500, DEC_JUMP, 0x1008, 0x1000, 0);
    world_store();
    assert_string_equal(
        world_query("SELECT cpu, g.start_ns + o.value, g.end_ns + o.value FROM gaps g, (SELECT "
                    "value FROM meta WHERE key = 'origin_perf_ns') o WHERE reason = 'cpu not "
                    "recorded' ORDER BY cpu"),
        "0|2500|4000\n7|1000|4000\n");
}

/* What the recorder says of a process's code: the gap is that process's, at the end. */
static void code_that_was_not_copied_is_a_gap(void **state)
{
    static const char meta[] = "uncopied.10=the code of 3 mappings was not copied\0unnamed.10=too late\0";

    (void)state;
    recording_meta(meta, sizeof(meta) - 1);
    recording_at(1000, 10, 10, 0);
    recording_switch(false, false);
    recording_at(4000, 10, 10, 0);
    recording_switch(true, false);
    world_load(-2);
    world_emit(10, 1100, DEC_ENABLE, 0, 0x1000, 0);
    world_store();
    assert_string_equal(
        world_query(
            "SELECT g.reason, g.detail, g.start_ns + o.value, t.tid FROM gaps g JOIN threads t ON t.id = "
            "g.thread_id, (SELECT value FROM meta WHERE key = 'origin_perf_ns') o WHERE g.detail LIKE "
            "'%copied' OR g.reason = 'no names' ORDER BY 1"),
        "no image|the code of 3 mappings was not copied|4000|10\nno names|too late|4000|10\n");
}

static void a_thread_that_changes_cpus_is_put_together(void **state)
{
    (void)state;
    recording_at(1000, 10, 10, 0);
    recording_comm(10, 10, "t", false);
    world_load(-2);
    assert_int_equal(st_vec_push(&world_sb->rings, (struct dec_ring){.tid = -1, .cpu = 1}), 0);
    dec_model_free(world_model);
    assert_int_equal(dec_model_new(world_sb, NULL, &world_model, NULL), 0);
    world_emit(10, 1000, DEC_ENABLE, 0, 0x1000, 0);
    world_emit(10, 1100, DEC_FAR_CALL, 0x1010, 0, 0);
    world_emit(10, 1100, DEC_DISABLE, 0x1010, 0, 0);
    world_emit(10, 3000, DEC_ENABLE, 0, 0x1025, DEC_RESUMED);
    world_emit(10, 3100, DEC_JUMP, 0x1030, 0x1000, 0);
    struct dec_stream_info info = {.pid = 10, .tid = 10, .ring = 1};
    const struct dec_event second[] = {
        {.time = 2000, .to = 0x1015, .kind = DEC_ENABLE, .flags = DEC_TIME_EXACT},
        {.time = 2100, .from = 0x1020, .kind = DEC_FAR_CALL, .flags = DEC_TIME_EXACT | 5 << DEC_LENGTH_SHIFT},
        {.time = 2100, .from = 0x1020, .kind = DEC_DISABLE, .flags = DEC_TIME_EXACT},
    };
    assert_int_equal(dec_model_emit(world_model, &info, second, 3, NULL), 0);
    world_store();
    assert_string_equal(world_query("SELECT function, start_ns, end_ns, depth FROM calls ORDER BY id"),
                        "[unknown]|0|2100|0\n[syscall]|100|1000|1\n[syscall]|1100|2000|1\n");
}

static void what_a_program_wrote_is_a_mark(void **state)
{
    struct dec_stream_info info = {.pid = 10, .tid = 11};
    const struct dec_event e = {.time = 1500, .arg = 0xabc, .kind = DEC_PTWRITE, .cpu = 2};

    (void)state;
    recording_at(1000, 10, 11, 0);
    recording_comm(10, 11, "prog", true);
    world_load(11);
    assert_int_equal(dec_model_emit(world_model, &info, &e, 1, NULL), 0);
    world_store();
    assert_string_equal(world_query("SELECT time_ns, name, detail FROM mark ORDER BY time_ns"),
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
    world_load(ring);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct dec_event e = {.time = 1000 + 100 * i,
                              .from = steps[i].from,
                              .to = steps[i].to,
                              .kind = (uint16_t)steps[i].kind,
                              .flags = DEC_TIME_EXACT | 5 << DEC_LENGTH_SHIFT,
                              .arg = steps[i].cycles << 32 | steps[i].instructions};

        e.flags |= steps[i].to != 0x200a ? DEC_TAKEN : 0;
        assert_int_equal(dec_model_emit(world_model, &info, &e, 1, NULL), 0);
    }
    world_store();
    assert_string_equal(world_query("SELECT depth, function, instructions, cycles FROM calls ORDER BY id"),
                        "0|[unknown]|43|98\n1|[unknown]|12|57\n1|[syscall]|-|-\n1|[unknown]|8|8\n");
    assert_string_equal(world_query("PRAGMA integrity_check"), "ok\n");
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
        cmocka_unit_test_setup_teardown(a_program_has_its_command_line, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_vdso_in_the_snapshot_is_used, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_vdso_is_that_of_the_programs_kind, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_missing_vdso_is_not_that_of_the_other_kind, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(calls_and_their_time_off_the_cpu, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(what_is_missing_is_a_row, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_pause_is_a_gap_of_who_ran, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(an_overwritten_ring_hides_the_past, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_loss_of_a_cpu_concerns_all_who_ran_there, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(a_cpu_that_went_is_a_gap_from_its_last_branch_on, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(code_that_was_not_copied_is_a_gap, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_thread_that_changes_cpus_is_put_together, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(what_a_program_wrote_is_a_mark, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(instructions_and_cycles_of_calls, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(instructions_and_cycles_by_the_ring_of_a_cpu, world_set_up,
                                        world_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
