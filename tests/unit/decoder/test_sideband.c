/* The side-band: what perf's records say of threads, processes, switches and rings. */
#include "recording.h"

#include "decoder/sideband/sideband.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct pd_reader *reader;
static struct dec_images *images;
static struct dec_sideband *sb;

static int set_up(void **state)
{
    (void)state;
    recording_begin();
    return 0;
}

static void read_it(void)
{
    struct st_error err = {0};

    recording_end();
    if (pd_reader_open(recording_path(), &reader, &err) || dec_images_new(NULL, &images, &err) ||
        dec_sideband_read(reader, images, &sb, &err))
        fail_msg("%s", err.text);
}

static int tear_down(void **state)
{
    (void)state;
    dec_sideband_free(sb);
    sb = NULL;
    dec_images_free(images);
    images = NULL;
    pd_reader_close(reader);
    reader = NULL;
    recording_remove();
    return 0;
}

static const char *mapped(const struct dec_thread *t, uint64_t time, uint64_t address)
{
    const struct dec_mapping *m = dec_space_find(t->process->space, time, address);

    return m ? m->image->name : "nothing";
}

static void names_over_time(void **state)
{
    const struct dec_thread *t;

    (void)state;
    recording_comm(10, 10, "before", false); /* made up by the recorder: no time */
    recording_at(2000, 10, 10, 0);
    recording_comm(10, 10, "later", false);
    recording_at(1000, 10, 10, 0); /* files are not in the order of time */
    recording_comm(10, 10, "earlier", false);
    read_it();
    t = dec_sideband_thread(sb, 10, -1, 5);
    assert_non_null(t);
    assert_string_equal(dec_thread_name(t, 999), "before");
    assert_string_equal(dec_thread_name(t, 1000), "earlier");
    assert_string_equal(dec_thread_name(t, 1999), "earlier");
    assert_string_equal(dec_thread_name(t, 9999), "later");
    assert_int_equal(sb->first, 1000);
    assert_int_equal(sb->last, 2000);
}

static void a_thread_inherits_its_name_and_space(void **state)
{
    const struct dec_thread *t;

    (void)state;
    recording_at(50, 10, 10, 0);
    recording_comm(10, 10, "parent", false);
    recording_mmap(10, 0x1000, 0x1000, 0, "/bin/one");
    recording_at(100, 10, 10, 0);
    recording_fork(10, 10, 11, 10);
    recording_at(200, 10, 11, 0);
    recording_exit(10, 11);
    read_it();
    t = dec_sideband_thread(sb, 11, -1, 150);
    assert_non_null(t);
    assert_string_equal(dec_thread_name(t, 150), "parent");
    assert_ptr_equal(t->process, dec_sideband_thread(sb, 10, -1, 0)->process);
    assert_int_equal(t->start, 100);
    assert_int_equal(t->end, 200);
    assert_string_equal(mapped(t, 150, 0x1800), "one");
}

static void a_child_has_a_copy_of_the_space_until_it_executes(void **state)
{
    const struct dec_thread *parent, *child;

    (void)state;
    recording_at(50, 10, 10, 0);
    recording_comm(10, 10, "one", false);
    recording_mmap(10, 0x1000, 0x1000, 0, "/bin/one");
    recording_at(100, 10, 10, 0);
    recording_fork(20, 10, 20, 10);
    recording_at(200, 10, 10, 0);
    recording_mmap(10, 0x5000, 0x1000, 0, "/lib/late");
    recording_at(300, 20, 20, 0);
    recording_comm(20, 20, "two", true);
    recording_mmap(20, 0x3000, 0x1000, 0, "/bin/two");
    read_it();
    parent = dec_sideband_thread(sb, 10, -1, 0);
    child = dec_sideband_thread(sb, 20, -1, 150);
    assert_int_equal(child->process->parent_pid, 10);
    assert_string_equal(mapped(child, 150, 0x1000), "one");
    assert_string_equal(mapped(child, 250, 0x5000), "nothing");
    assert_string_equal(mapped(child, 350, 0x1000), "nothing");
    assert_string_equal(mapped(child, 350, 0x3000), "two");
    assert_string_equal(mapped(parent, 350, 0x1000), "one");
    assert_string_equal(mapped(parent, 350, 0x5000), "late");
    assert_int_equal(child->execs.n, 1);
    assert_int_equal(child->execs.at[0], 300);
}

/* A recorder makes up records of what was there when it began. */
/* A BPF program, made and removed; another one in its place. */
static void code_that_the_kernel_made_has_a_name(void **state)
{
    const uint64_t at = 0xffffffffc0001000;
    const struct dec_mapping *m;
    struct dec_place place = {0};

    (void)state;
    recording_at(50, 10, 10, 0);
    recording_ksymbol(at, 0x80, 0, "bpf_prog_6deef7357e7b4530_one");
    recording_at(100, 10, 10, 0);
    recording_ksymbol(at, 0x80, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER, "bpf_prog_6deef7357e7b4530_one");
    recording_at(150, 10, 10, 0);
    recording_ksymbol(at + 0x1000, 0x40, 0, "bpf_prog_two");
    read_it();
    m = dec_space_find(sb->kernel, 60, at + 0x10);
    assert_non_null(m);
    assert_string_equal(m->image->name, "[bpf_prog_6deef7357e7b4530_one]");
    assert_int_equal(dec_image_gap(m->image), DEC_GAP_NO_IMAGE);
    assert_non_null(strstr(m->image->detail, "bpf_prog_6deef7357e7b4530_one"));
    dec_space_symbol(sb->kernel, 60, at + 0x10, &place);
    assert_string_equal(place.symbol->name, "bpf_prog_6deef7357e7b4530_one");
    assert_int_equal(place.start, at);
    assert_string_equal(dec_space_find(sb->kernel, 160, at + 0x1010)->image->name, "[bpf_prog_two]");
    assert_null(dec_space_find(sb->kernel, 60, at + 0x80));
}

static void threads_that_were_there_have_no_birth(void **state)
{
    (void)state;
    recording_at(100, 10, 10, 0);
    recording_fork(10, 1, 10, 1);
    recording_fork(10, 10, 11, 10);
    recording_comm(10, 11, "t", false);
    recording_at(200, 10, 10, 0);
    recording_fork(10, 10, 12, 10);
    read_it();
    assert_int_equal(dec_sideband_thread(sb, 10, -1, 100)->start, 0);
    assert_int_equal(dec_sideband_thread(sb, 11, -1, 100)->start, 0);
    assert_int_equal(dec_sideband_thread(sb, 12, -1, 200)->start, 200);
    assert_null(dec_sideband_thread(sb, 1, -1, 100));
}

static void a_tid_that_is_used_again_is_another_thread(void **state)
{
    (void)state;
    recording_at(100, 10, 10, 0);
    recording_fork(20, 10, 20, 10);
    recording_comm(20, 20, "first", false);
    recording_at(200, 20, 20, 0);
    recording_exit(20, 20);
    recording_at(300, 10, 10, 0);
    recording_fork(20, 10, 20, 10);
    recording_comm(20, 20, "second", false);
    read_it();
    assert_string_equal(dec_thread_name(dec_sideband_thread(sb, 20, -1, 150), 150), "first");
    assert_string_equal(dec_thread_name(dec_sideband_thread(sb, 20, -1, 350), 350), "second");
    assert_ptr_not_equal(dec_sideband_thread(sb, 20, -1, 150)->process,
                         dec_sideband_thread(sb, 20, -1, 350)->process);
    assert_int_equal(dec_sideband_thread(sb, 20, -1, 150)->process->end, 200);
}

static void switches_make_slices_and_times_off_the_cpu(void **state)
{
    const struct dec_thread *t;

    (void)state;
    recording_at(100, 10, 10, 3); /* the thread ran when the recording began */
    recording_switch(true, false);
    recording_at(150, 10, 10, 1);
    recording_switch(false, false);
    recording_at(180, 10, 10, 1);
    recording_switch(true, true);
    recording_at(190, 10, 10, 1);
    recording_switch(false, false);
    recording_at(50, 10, 10, 0);
    recording_comm(10, 10, "t", false);
    recording_at(250, 10, 10, 0);
    recording_lost(3);
    read_it();
    t = dec_sideband_thread(sb, 10, -1, 0);
    assert_int_equal(t->slices.n, 3);
    assert_int_equal(t->slices.at[0].start, 50);
    assert_int_equal(t->slices.at[0].end, 100);
    assert_int_equal(t->slices.at[0].cpu, 3);
    assert_int_equal(t->slices.at[1].start, 150);
    assert_int_equal(t->slices.at[1].end, 180);
    assert_int_equal(t->slices.at[1].cpu, 1);
    assert_int_equal(t->slices.at[2].start, 190);
    assert_int_equal(t->slices.at[2].end, 250); /* to the end of the recording */
    assert_int_equal(t->offcpu.n, 2);
    assert_int_equal(t->offcpu.at[0].start, 100);
    assert_int_equal(t->offcpu.at[0].end, 150);
    assert_int_equal(t->offcpu.at[0].preempted, 0);
    assert_int_equal(t->offcpu.at[1].preempted, 1);
    assert_int_equal(sb->notices.n, 1);
    assert_true(sb->notices.at[0].lost);
    assert_non_null(strstr(sb->notices.at[0].detail, "3"));
}

static void goes(uint64_t time, uint32_t tid, uint32_t cpu, bool out)
{
    recording_at(time, 10, tid, cpu);
    recording_switch(out, false);
}

static void assert_waits(uint32_t tid, const uint64_t (*waits)[2], size_t n)
{
    const struct dec_thread *t = dec_sideband_thread(sb, (int32_t)tid, -1, 0);

    assert_int_equal(t->offcpu.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(t->offcpu.at[i].start, waits[i][0]);
        assert_int_equal(t->offcpu.at[i].end, waits[i][1]);
    }
}

static void assert_ran(uint32_t tid, const uint64_t (*slices)[3], size_t n)
{
    const struct dec_thread *t = dec_sideband_thread(sb, (int32_t)tid, -1, 0);

    assert_int_equal(t->slices.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(t->slices.at[i].start, slices[i][0]);
        assert_int_equal(t->slices.at[i].end, slices[i][1]);
        assert_int_equal(t->slices.at[i].cpu, slices[i][2]);
    }
}

/* Switches of CPU 1 are lost from 200 to 300. */
static void nothing_is_known_over_a_loss(void **state)
{
    (void)state;
    goes(100, 11, 1, false);
    goes(110, 12, 0, false);
    goes(120, 12, 0, true); /* waits on: whether it ran meanwhile is not known */
    goes(130, 13, 0, false);
    goes(140, 13, 0, true);
    goes(150, 13, 0, false); /* seen whole before the loss */
    goes(160, 14, 2, false); /* has a CPU all the time */
    goes(200, 11, 1, true);
    goes(200, 15, 1, false);
    goes(210, 13, 0, true);
    goes(250, 13, 0, false); /* it may have been on CPU 1 in between */
    recording_at(300, 10, 15, 1);
    recording_lost_switches(5);
    goes(305, 11, 1, true); /* came unseen */
    goes(320, 12, 0, false);
    goes(330, 12, 0, true);
    goes(340, 12, 0, false);
    goes(350, 14, 2, true);
    goes(360, 11, 1, false);
    goes(400, 11, 1, true);
    recording_at(500, 10, 10, 0);
    recording_comm(10, 10, "t", false);
    read_it();
    assert_waits(11, (const uint64_t[][2]){{305, 360}, {400, 500}}, 2);
    assert_ran(11, (const uint64_t[][3]){{100, 200, 1}, {300, 305, 1}, {360, 400, 1}}, 3);
    assert_waits(12, (const uint64_t[][2]){{120, 200}, {330, 340}}, 2);
    assert_ran(12, (const uint64_t[][3]){{110, 120, 0}, {320, 330, 0}, {340, 500, 0}}, 3);
    assert_waits(13, (const uint64_t[][2]){{140, 150}}, 1);
    assert_ran(13, (const uint64_t[][3]){{130, 140, 0}, {150, 210, 0}, {250, 500, 0}}, 3);
    assert_ran(14, (const uint64_t[][3]){{160, 350, 2}}, 1);
    assert_waits(15, NULL, 0);
    assert_ran(15, NULL, 0);
    assert_int_equal(sb->notices.n, 1);
    assert_int_equal(sb->notices.at[0].since, 200);
    assert_int_equal(sb->notices.at[0].time, 300);
}

/* Of two losses the one that is known later began first. */
static void losses_of_two_cpus_overlap(void **state)
{
    (void)state;
    goes(100, 11, 1, true);
    goes(110, 12, 2, true);
    goes(130, 12, 2, false);
    goes(150, 13, 2, false);
    recording_at(200, 10, 13, 2);
    recording_lost_switches(1);
    recording_at(300, 10, 11, 1);
    recording_lost_switches(1);
    goes(310, 11, 1, false);
    goes(350, 13, 2, true); /* on since the loss at least */
    goes(360, 13, 2, false);
    recording_at(500, 10, 10, 0);
    recording_comm(10, 10, "t", false);
    read_it();
    assert_waits(11, NULL, 0);
    assert_waits(12, NULL, 0);
    assert_ran(12, (const uint64_t[][3]){{100, 110, 2}, {130, 150, 2}}, 2);
    assert_waits(13, (const uint64_t[][2]){{350, 360}}, 1);
    assert_ran(13, (const uint64_t[][3]){{200, 350, 2}, {360, 500, 2}}, 2);
}

static void off_the_cpu_to_the_end(void **state)
{
    const struct dec_thread *t;

    (void)state;
    recording_at(100, 10, 10, 0);
    recording_switch(true, false);
    recording_at(100, 10, 11, 0);
    recording_switch(true, false);
    recording_at(300, 10, 11, 0);
    recording_exit(10, 11);
    recording_at(900, 10, 12, 0);
    recording_comm(10, 12, "last", false);
    read_it();
    t = dec_sideband_thread(sb, 10, -1, 0);
    assert_int_equal(t->offcpu.n, 1);
    assert_int_equal(t->offcpu.at[0].end, 900);
    t = dec_sideband_thread(sb, 11, -1, 0);
    assert_int_equal(t->offcpu.at[0].end, 300); /* it was dead after that */
}

static void idle_threads_are_one_a_cpu(void **state)
{
    (void)state;
    recording_at(100, 0, 0, 0);
    recording_switch(true, false);
    recording_at(110, 0, 0, 1);
    recording_switch(true, false);
    recording_at(120, 0, 0, 0);
    recording_switch(false, false);
    read_it();
    assert_ptr_not_equal(dec_sideband_thread(sb, 0, 0, 0), dec_sideband_thread(sb, 0, 1, 0));
    assert_string_equal(dec_thread_name(dec_sideband_thread(sb, 0, 1, 0), 0), "swapper/1");
    assert_int_equal(dec_sideband_thread(sb, 0, 0, 0)->offcpu.n, 1);
    assert_int_equal(dec_sideband_thread(sb, 0, 0, 0)->offcpu.at[0].end, 120);
}

static void a_stall_record_is_kept_with_its_thread(void **state)
{
    struct st_stall_record r = {
        .magic = ST_STALL_MAGIC, .version = ST_STALL_VERSION, .kind = ST_STALL_OFFCPU, .pid = 10, .tid = 12};
    const struct recording_name names[] = {{0xffffffff81000020, 0xffffffff81000000, "schedule"},
                                           {0xffffffffc0000040, 0xffffffffc0000000, "helper [module]"}};

    (void)state;
    memset(r.comm, 'x', sizeof(r.comm)); /* a name without an end */
    recording_at(100, 1, 1, 0);          /* whoever was current: not the stalled thread */
    recording_stall(&r);
    recording_names(names, 2);
    read_it();
    assert_int_equal(sb->stalls.n, 1);
    assert_int_equal(sb->stalls.at[0].time, 100);
    assert_non_null(dec_sideband_thread(sb, 12, -1, 100));
    assert_string_equal(dec_thread_name(dec_sideband_thread(sb, 12, -1, 100), 100), "xxxxxxxxxxxxxxx");
    assert_string_equal(dec_sideband_kernel_name(sb, 0xffffffffc0000040)->name, "helper [module]");
    assert_int_equal(dec_sideband_kernel_name(sb, 0xffffffff81000020)->start, 0xffffffff81000000);
    assert_null(dec_sideband_kernel_name(sb, 0xffffffff81000021));
}

static void what_the_recorder_tells_of_rings(void **state)
{
    static const char strings[] =
        "ring.0=tid=11 cpu=-1 since=3000 offset=77 size=8 truncated=0\0"
        "ring.1=tid=12 cpu=-1 since=4000 offset=0 size=8 truncated=0\0switches_since=2000";

    (void)state;
    recording_at(1000, 10, 11, 2);
    recording_comm(10, 11, "t", false);
    recording_comm(10, 12, "u", false);
    recording_ring(0, 11, 77, 8);
    recording_ring(1, 12, 0, 8);
    recording_meta(strings, sizeof(strings));
    recording_at(5000, 10, 11, 2);
    recording_comm(10, 11, "u", false);
    read_it();
    assert_int_equal(sb->rings.n, 2);
    assert_true(sb->rings.at[0].overwritten);
    assert_false(sb->rings.at[1].overwritten);
    assert_int_equal(dec_sideband_thread(sb, 12, -1, 0)->traced_since, 4000);
    assert_int_equal(sb->notices.n, 1);
    assert_true(sb->notices.at[0].lost);
    assert_int_equal(sb->notices.at[0].time, 1000);
    assert_int_equal(sb->notices.at[0].until, 2000);
}

/* Bytes that the kernel had no room for are a seam in the ring, wherever the pieces end. */
static void a_truncated_chunk_splits_its_piece(void **state)
{
    const struct dec_ring *r;

    (void)state;
    recording_at(1000, 10, 11, 2);
    recording_aux(0, 40, PERF_AUX_FLAG_TRUNCATED);
    recording_aux(40, 24, 0);
    recording_aux(64, 64, PERF_AUX_FLAG_PARTIAL); /* the CPU was in VMX operation meanwhile */
    recording_ring(0, 11, 0, 64);
    recording_ring(0, 11, 64, 64);
    recording_ring(0, 11, 128, 64);
    recording_ring(1, 12, 0, 64);
    read_it();
    assert_int_equal(sb->rings.n, 2);
    r = &sb->rings.at[0];
    assert_int_equal(r->pieces.n, 4);
    assert_int_equal(r->pieces.at[0].size, 40);
    assert_false(r->pieces.at[0].truncated);
    assert_int_equal(r->pieces.at[1].offset, 40);
    assert_int_equal(r->pieces.at[1].size, 24);
    assert_true(r->pieces.at[1].truncated);
    assert_false(r->pieces.at[2].truncated);
    assert_true(r->pieces.at[3].truncated);
    assert_int_equal(sb->rings.at[1].pieces.n, 1);
    assert_false(sb->rings.at[1].pieces.at[0].truncated);
}

/* perf fills a piece up to 8 bytes; the next one's offset tells where its trace ended. */
static void what_fills_a_piece_up_is_cut(void **state)
{
    const struct dec_ring *r;

    (void)state;
    recording_at(1000, 10, 11, 2);
    recording_ring(0, 11, 0, 64);
    recording_ring(0, 11, 57, 64);
    recording_ring(0, 11, 121, 64);
    recording_ring(0, 11, 177, 64);
    read_it();
    r = &sb->rings.at[0];
    assert_int_equal(r->pieces.n, 4);
    assert_int_equal(r->pieces.at[0].size, 57);
    assert_int_equal(r->pieces.at[1].size, 64);
    assert_int_equal(r->pieces.at[2].size, 64); /* 8 bytes are no filling */
    assert_int_equal(r->bytes, 57 + 64 + 64 + 64);
}

static void a_broken_stall_record_is_refused(void **state)
{
    struct st_stall_record r = {
        .magic = ST_STALL_MAGIC, .version = ST_STALL_VERSION, .kstack_n = ST_STALL_KSTACK + 1};
    struct st_error err = {0};

    (void)state;
    recording_stall(&r);
    recording_end();
    assert_int_equal(pd_reader_open(recording_path(), &reader, &err), 0);
    assert_int_equal(dec_images_new(NULL, &images, &err), 0);
    assert_int_equal(dec_sideband_read(reader, images, &sb, &err), ST_EBADFILE);
    assert_null(sb);
    assert_non_null(strstr(err.text, recording_path()));
    assert_non_null(strstr(err.text, "offset 0x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_over_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_inherits_its_name_and_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_child_has_a_copy_of_the_space_until_it_executes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(code_that_the_kernel_made_has_a_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_that_were_there_have_no_birth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tid_that_is_used_again_is_another_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(switches_make_slices_and_times_off_the_cpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_known_over_a_loss, set_up, tear_down),
        cmocka_unit_test_setup_teardown(losses_of_two_cpus_overlap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(off_the_cpu_to_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(idle_threads_are_one_a_cpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stall_record_is_kept_with_its_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_recorder_tells_of_rings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_truncated_chunk_splits_its_piece, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_fills_a_piece_up_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_stall_record_is_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
