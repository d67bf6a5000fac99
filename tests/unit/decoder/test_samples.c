/* Samples -> calls, on chains made by hand. */
#include "decoder/model/samples/samples.h"
#include "tracedb/tracedb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample_script.h"

/* Before the first sample and behind the last the thread was met at a switch only: what that shows gone, or
 * not there yet, is no call of then. */
static void nothing_is_made_up_before_the_first_sample(void **state)
{
    struct script s = {0};

    (void)state;
    off(&s, 100, 500, "mrR");
    at(&s, 600, "mad", false);
    at(&s, 700, "mad", false);
    make(&s, 50, 800, true);
    assert_int_equal(count(&s, 'a'), 1);
    assert_int_equal(count(&s, 'd'), 1);
    lasts(&s, 'a', 0, 500, 800);
    lasts(&s, 'm', 0, 50, 800);
    end(&s);
}

/* Where not every switch has a sample, nobody knows where the thread was in a wait without one. */
static void a_wait_without_a_sample_has_no_place(void **state)
{
    struct script s = {.all_until = 1000};

    (void)state;
    at(&s, 50, "mad", false);
    off(&s, 100, 200, NULL);
    at(&s, 300, "mad", false);
    off(&s, 1000, 1100, NULL);
    at(&s, 1200, "mad", false);
    off(&s, 1300, 1400, "madR");
    at(&s, 1500, "mad", false);
    s.offcpu[3] = (struct dec_offcpu){.start = 1600, .end = 1700, .preempted = true};
    s.noffcpu++;
    at(&s, 1800, "mad", false);
    make(&s, 0, 1900, true);
    assert_int_not_equal(s.offcpu[0].call, 0);
    assert_int_equal(s.offcpu[1].call, 0);
    assert_int_equal(s.offcpu[2].call, 1 + (call(&s, 'r', 0) - s.calls.at));
    assert_int_equal(s.offcpu[3].call, 0);
    end(&s);
}

/* The same where the recording begins with the switch. */
static void nothing_is_made_up_at_a_switch(void **state)
{
    struct script s = {0};

    (void)state;
    off(&s, 100, 500, "mrR");
    at(&s, 600, "mad", false);
    make(&s, 99, 800, false);
    assert_int_equal(count(&s, 'a'), 1);
    assert_int_equal(count(&s, 'd'), 1);
    lasts(&s, 'a', 0, 500, 800);
    end(&s);
}

static void nothing_is_made_up_behind_the_last_sample(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100, "mad", false);
    at(&s, 200, "mad", false);
    off(&s, 300, 700, "mrR");
    make(&s, 100, 900, false);
    assert_int_equal(count(&s, 'a'), 1);
    assert_int_equal(count(&s, 'd'), 1);
    assert_in_range(call(&s, 'a', 0)->start + call(&s, 'a', 0)->duration, 200, 300);
    lasts(&s, 'm', 0, 100, 900);
    end(&s);
}

static void what_stays_is_one_call(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100, "mab", false);
    at(&s, 200, "mab", false);
    at(&s, 300, "mac", false);
    at(&s, 400, "md", false);
    make(&s, 100, 450, false);
    lasts(&s, 'm', 0, 100, 450);
    lasts(&s, 'a', 0, 100, 350);
    lasts(&s, 'b', 0, 100, 250);
    lasts(&s, 'c', 0, 250, 350);
    lasts(&s, 'd', 0, 350, 450);
    assert_int_equal(s.calls.n, 5);
    assert_int_equal(call(&s, 'm', 0)->flags, TDB_CALL_SAMPLED | TDB_CALL_NO_CALL | TDB_CALL_NO_RETURN);
    assert_int_equal(call(&s, 'c', 0)->flags, TDB_CALL_SAMPLED);
    assert_int_equal(call(&s, 'a', 0)->self, 0);
    assert_int_equal(call(&s, 'c', 0)->parent, 1 + (call(&s, 'a', 0) - s.calls.at));
    assert_int_equal(call(&s, 'c', 0)->depth, 2);
    end(&s);
}

static void another_call_site_is_another_call(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100, "m1ab", false);
    at(&s, 200, "m2ab", false);
    at(&s, 300, "m2ab", false);
    make(&s, 100, 300, true);
    assert_int_equal(count(&s, 'm'), 1);
    assert_int_equal(count(&s, 'a'), 2);
    lasts(&s, 'a', 1, 150, 300);
    assert_int_equal(call(&s, 'm', 0)->flags, TDB_CALL_SAMPLED); /* the whole life of the thread is there */
    end(&s);
}

static void recursion_is_marked(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100, "maaa", false);
    make(&s, 100, 200, true);
    assert_int_equal(count(&s, 'a'), 3);
    assert_false(call(&s, 'a', 0)->flags & TDB_CALL_RECURSIVE);
    assert_true(call(&s, 'a', 2)->flags & TDB_CALL_RECURSIVE);
    assert_int_equal(call(&s, 'a', 2)->depth, 3);
    end(&s);
}

/* Half of the way between two samples is half of the time that the thread had a CPU. */
static void time_off_the_cpu_belongs_to_the_chain_at_the_switch(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100000, "mab", false);
    off(&s, 200000, 1200000, "mrSX");
    at(&s, 1300000, "mab", false);
    make(&s, 100000, 1400000, false);
    lasts(&s, 'r', 0, 192000, 1200000);
    lasts(&s, 'x', 0, 192000, 1200000);
    assert_int_equal(call(&s, 'x', 0)->self, 8000); /* the way into the scheduler */
    assert_int_equal(count(&s, 'a'), 2);
    lasts(&s, 'a', 0, 100000, 192000);
    lasts(&s, 'a', 1, 1200000, 1400000);
    assert_int_equal(call(&s, 'm', 0)->duration, 1300000);
    assert_int_equal(s.offcpu[0].call, 1 + (call(&s, 'x', 0) - s.calls.at));
    end(&s);
}

/* Nobody knows what else it waited in. */
static void an_interval_without_a_chain_changes_nothing(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100, "ma", false);
    off(&s, 150, 1150, NULL);
    at(&s, 1200, "ma", false);
    make(&s, 100, 1200, false);
    assert_int_equal(s.calls.n, 2);
    lasts(&s, 'a', 0, 100, 1200);
    assert_int_equal(call(&s, 'a', 0)->self, 100);
    end(&s);
}

/* The switch shows that g was over by then; it does not come back before the next sample. */
static void what_a_switch_showed_gone_stays_gone(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100000, "m1xgs", false);
    off(&s, 200000, 300000, "m1xnS");
    at(&s, 400000, "m2xas", false);
    make(&s, 100000, 500000, false);
    assert_int_equal(count(&s, 'g'), 1);
    lasts(&s, 'g', 0, 100000, 192000);
    lasts(&s, 'a', 0, 350000, 500000);
    end(&s);
}

/* The preempted thread was in g already. */
/* On a busy machine a thread may have its CPU for less than a period at a time. */
static void what_was_preempted_twice_went_on_between(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 1000, "mx", false);
    off(&s, 1200, 5000, "mabI");
    off(&s, 5100, 9000, "mabI");
    at(&s, 9900, "my", false);
    s.offcpu[0].preempted = s.offcpu[1].preempted = true;
    make(&s, 1000, 10000, false);
    assert_int_equal(count(&s, 'a'), 1);
    assert_int_equal(count(&s, 'b'), 1);
    assert_int_equal(count(&s, 'i'), 2);
    assert_true(call(&s, 'b', 0)->start <= 1200);
    assert_true(call(&s, 'b', 0)->start + call(&s, 'b', 0)->duration >= 9000);
    end(&s);

    s = (struct script){0}; /* it waited: what it does between two waits nobody knows */
    at(&s, 1000, "mx", false);
    off(&s, 1200, 5000, "mabI");
    off(&s, 5100, 9000, "mabI");
    at(&s, 9900, "my", false);
    make(&s, 1000, 10000, false);
    assert_int_equal(count(&s, 'b'), 2);
    end(&s);
}

static void a_switch_tells_where_the_turn_was(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100000, "ma", false);
    off(&s, 200000, 300000, "mgS");
    at(&s, 900000, "mg", false);
    make(&s, 100000, 900000, false);
    assert_int_equal(count(&s, 'g'), 1);
    assert_in_range(call(&s, 'g', 0)->start, 149000, 151000);
    end(&s);
}

static void has(const struct script *s, char function, size_t n, uint32_t flags)
{
    const uint32_t bounds = TDB_CALL_SEVERAL | TDB_CALL_PART;

    assert_int_equal(call(s, function, n)->flags & bounds, flags);
}

/* Three waits in the same place, and the samples around them met the thread there too. */
static void each_wait_is_a_call(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100000, "mafS", false);
    off(&s, 200000, 34200000, "mafSX");
    off(&s, 34220000, 40000000, "mafSX");
    off(&s, 40020000, 50000000, "mafSX");
    at(&s, 50100000, "mafS", false);
    make(&s, 100000, 50200000, false);
    for (size_t i = 0; i < s.noffcpu; i++) {
        const struct tdb_span *x = call(&s, 'x', i);

        assert_int_equal(s.offcpu[i].call, 1 + (x - s.calls.at));
        assert_int_equal(x->start + x->duration, s.offcpu[i].end);
        assert_in_range(x->duration, s.offcpu[i].end - s.offcpu[i].start,
                        s.offcpu[i].end - s.offcpu[i].start + 8000);
    }
    for (size_t i = 0; i < count(&s, 'f'); i++) /* the first was met before it waited */
        assert_true(call(&s, 'f', i)->duration <= 34100000);
    assert_int_equal(count(&s, 'a'), 1);
    has(&s, 'a', 0, TDB_CALL_SEVERAL);
    has(&s, 'm', 0, 0);
    has(&s, 'x', 0, TDB_CALL_PART);
    has(&s, 'x', 2, TDB_CALL_PART);
    end(&s);
}

static void waits_in_different_calls_are_whole(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100000, "ma", false);
    off(&s, 200000, 300000, "ma1fSX");
    off(&s, 400000, 500000, "ma2fSX");
    off(&s, 600000, 700000, "ma2gSX");
    at(&s, 800000, "ma", false);
    off(&s, 900000, 990000, "ma2gSX"); /* it was elsewhere between */
    make(&s, 100000, 1000000, false);
    assert_int_equal(count(&s, 'f'), 2);
    assert_int_equal(count(&s, 'g'), 2);
    for (size_t i = 0; i < 2; i++) {
        has(&s, 'f', i, 0);
        has(&s, 'g', i, 0);
    }
    end(&s);
}

/* That it was in the kernel some time before says nothing of the wait. */
static void a_wait_without_a_chain_is_in_no_system_call(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100000, "ma", false);
    off(&s, 200000, 300000, NULL);
    off(&s, 310000, 500000, NULL);
    at(&s, 600000, "mafS", false);
    make(&s, 100000, 600000, false);
    for (size_t i = 0; i < count(&s, 'f'); i++)
        assert_true(call(&s, 'f', i)->duration <= 100000);
    assert_int_equal(s.offcpu[1].call, 1 + (call(&s, 'a', 0) - s.calls.at));
    end(&s);
}

/* Of a thread that was never met on a CPU only the waits are known. */
static void a_thread_that_only_waits_is_in_no_call_between(void **state)
{
    struct script s = {0};

    (void)state;
    off(&s, 100000, 300000, "mafSX");
    off(&s, 400000, 500000, "mafSX");
    make(&s, 99999, 600000, false);
    assert_int_equal(count(&s, 'f'), 2);
    assert_int_equal(count(&s, 'x'), 2);
    assert_true(call(&s, 'f', 1)->duration <= 108000);
    end(&s);
}

static void measure(struct script *s, int32_t tid, uint64_t from, uint64_t to)
{
    struct dec_measured call = {.tid = tid, .span = {from, to}};

    assert_int_equal(st_vec_push(&s->measured, call), 0);
}

/* It waited twice in it, and was preempted once. The next one is not known that well, and another thread's
 * says nothing. */
static void a_measured_system_call_is_one_call(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100000, "ma", false);
    off(&s, 200000, 300000, "mafSTUX");
    off(&s, 310000, 320000, "mafSTUI");
    s.offcpu[1].preempted = true;
    off(&s, 350000, 500000, "mafSTUY");
    off(&s, 600000, 700000, "mafSTUX");
    at(&s, 800000, "ma", false);
    measure(&s, 6, 590000, 710000);
    measure(&s, 7, 180000, 510000);
    make(&s, 100000, 900000, false);
    assert_int_equal(count(&s, 'f'), 2);
    for (const char *c = "fstu"; *c; c++) {
        lasts(&s, *c, 0, 180000, 510000);
        lasts(&s, *c, 1, 592000, 700000);
        has(&s, *c, 0, 0);
        has(&s, *c, 1, 0);
    }
    lasts(&s, 'y', 0, 342000, 500000);
    assert_int_equal(s.offcpu[2].call, 1 + (call(&s, 'y', 0) - s.calls.at));
    has(&s, 'a', 0, TDB_CALL_SEVERAL);
    end(&s);
}

/* Two of them at once after each other, both met on the CPU too: the turn of the samples is neither's end. */
static void measured_system_calls_do_not_overlap(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100000, "ma", false);
    at(&s, 210000, "mafSTUX", false);
    off(&s, 220000, 300000, "mafSTUY");
    at(&s, 310000, "mafSTUX", false);
    at(&s, 430000, "mafSTUX", false);
    at(&s, 440000, "mafSTUX", false);
    off(&s, 460000, 500000, "mafSTUY");
    at(&s, 700000, "ma", false);
    measure(&s, 7, 200000, 400000);
    measure(&s, 7, 420000, 600000);
    make(&s, 100000, 700000, true);
    assert_int_equal(count(&s, 't'), 2);
    lasts(&s, 't', 0, 200000, 400000);
    lasts(&s, 't', 1, 420000, 600000);
    assert_int_equal(count(&s, 'a'), 1);
    end(&s);
}

/* Preempted in the middle of a system call, which then waits: no wait ended in between. */
static void a_preempted_system_call_goes_on(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100000, "ma", false);
    off(&s, 200000, 300000, "mafSI");
    s.offcpu[0].preempted = true;
    off(&s, 310000, 500000, "mafSX");
    at(&s, 600000, "ma", false);
    make(&s, 100000, 700000, false);
    has(&s, 'f', 0, 0);
    assert_int_equal(s.offcpu[1].call, 1 + (call(&s, 'x', 0) - s.calls.at));
    end(&s);
}

static void broken_chains_get_what_is_around_them(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100, "mabc", false);
    at(&s, 200, "zS", false);
    at(&s, 300, "mabd", false);
    s.chains[1].broken = true;
    assert_int_equal(dec_samples_mend(&s.frames, s.chains, s.n), 0);
    make(&s, 100, 300, false);
    assert_int_equal(count(&s, 'b'), 1);
    lasts(&s, 'b', 0, 100, 300);
    lasts(&s, 'z', 0, 150, 250);
    assert_int_equal(call(&s, 'z', 0)->parent, 1 + (call(&s, 'b', 0) - s.calls.at));
    end(&s);
}

/* Nothing whole is behind it: it stays as it is. */
static void a_broken_chain_at_the_end_stays(void **state)
{
    struct script s = {0};

    (void)state;
    at(&s, 100, "mab", false);
    at(&s, 200, "z", false);
    s.chains[1].broken = true;
    assert_int_equal(dec_samples_mend(&s.frames, s.chains, s.n), 0);
    assert_int_equal(s.chains[1].n, 1);
    make(&s, 100, 300, false);
    lasts(&s, 'm', 0, 100, 150);
    lasts(&s, 'z', 0, 150, 300);
    end(&s);
}

/* However the samples and the switches lie: calls nest, and no time is counted twice or lost. */
static void random_scripts_add_up(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct script s = {0};
        uint64_t time = 1000, self = 0, cpu;
        static const char *const texts[] = {"mab", "mac", "m1ab", "mS", "mabS", "mrST", "x", ""};

        at(&s, time, "ma", false);
        while (s.n + 2 < MOST / 2) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            time += 2 + (random >> 40) % 50000;
            if (random >> 62)
                at(&s, time, texts[random >> 33 & 7], false);
            else
                off(&s, time, time + 1 + (random >> 50), random >> 61 & 1 ? texts[random >> 33 & 7] : NULL);
            if (s.noffcpu && s.offcpu[s.noffcpu - 1].end > time)
                time = s.offcpu[s.noffcpu - 1].end;
        }
        cpu = time + 10 - 1000;
        for (size_t i = 0; i < s.noffcpu; i++)
            cpu -= s.offcpu[i].end - s.offcpu[i].start;
        make(&s, 1000, time + 10, false);
        for (size_t i = 0; i < s.calls.n; i++) {
            const struct tdb_span *c = &s.calls.at[i];
            const struct tdb_span *parent = c->parent ? &s.calls.at[c->parent - 1] : NULL;

            assert_true(c->start >= 1000 && c->start + c->duration <= time + 10);
            assert_true(!i || c->start >= c[-1].start);
            if (parent) {
                assert_true(parent < c && c->depth == parent->depth + 1);
                assert_true(c->start >= parent->start &&
                            c->start + c->duration <= parent->start + parent->duration);
            }
            self += c->self;
        }
        assert_true(self <= cpu);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_made_up_before_the_first_sample),
        cmocka_unit_test(a_wait_without_a_sample_has_no_place),
        cmocka_unit_test(nothing_is_made_up_at_a_switch),
        cmocka_unit_test(nothing_is_made_up_behind_the_last_sample),
        cmocka_unit_test(what_stays_is_one_call),
        cmocka_unit_test(another_call_site_is_another_call),
        cmocka_unit_test(recursion_is_marked),
        cmocka_unit_test(time_off_the_cpu_belongs_to_the_chain_at_the_switch),
        cmocka_unit_test(an_interval_without_a_chain_changes_nothing),
        cmocka_unit_test(what_a_switch_showed_gone_stays_gone),
        cmocka_unit_test(what_was_preempted_twice_went_on_between),
        cmocka_unit_test(a_switch_tells_where_the_turn_was),
        cmocka_unit_test(each_wait_is_a_call),
        cmocka_unit_test(waits_in_different_calls_are_whole),
        cmocka_unit_test(a_wait_without_a_chain_is_in_no_system_call),
        cmocka_unit_test(a_thread_that_only_waits_is_in_no_call_between),
        cmocka_unit_test(a_measured_system_call_is_one_call),
        cmocka_unit_test(measured_system_calls_do_not_overlap),
        cmocka_unit_test(a_preempted_system_call_goes_on),
        cmocka_unit_test(broken_chains_get_what_is_around_them),
        cmocka_unit_test(a_broken_chain_at_the_end_stays),
        cmocka_unit_test(random_scripts_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
