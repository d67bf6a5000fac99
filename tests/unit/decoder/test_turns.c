/* Whose branches those in the ring of a CPU are. */
#include "decoder/sideband/sideband.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    SWITCH_TO = 0x700 /* the top bit is added */
};
#define KERNEL 0xffffffff81000000u

static struct dec_process process;
static struct dec_thread a = {.process = &process, .tid = 1}, b = {.process = &process, .tid = 2},
                         c = {.process = &process, .tid = 3};
static char text[512];

static int note(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                const char *detail)
{
    (void)ctx;
    (void)detail;
    for (size_t i = 0; i < n; i++)
        sprintf(text + strlen(text), "%lu:%d ", events[i].time, info->tid);
    return 0;
}

/* Events at times, each "on" (tracing starts in the kernel), "off", "k" (a branch in the kernel), "u" (in
 * user code), "s" (to
 * __switch_to). Returns "TIME:TID " for each, one call of the receiver a run. */
static const char *told(const struct dec_turn *turns, size_t n, bool kernel_known, const char *script)
{
    struct dec_cpu cpu = {.cpu = 5};
    struct dec_ring ring = {.tid = -1, .cpu = 5};
    struct dec_sideband sb = {.switch_to = kernel_known ? KERNEL + SWITCH_TO : 0};
    struct dec_stream_info info = {.pid = 9, .tid = 9};
    char *copy = strdup(script), *at = copy;
    struct dec_turns *t;
    struct st_error err = {0};

    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        assert_int_equal(st_vec_push(&cpu.turns, turns[i]), 0);
    assert_int_equal(st_vec_push(&sb.cpus, cpu), 0);
    assert_int_equal(st_vec_push(&sb.rings, ring), 0);
    assert_int_equal(dec_turns_new(&sb, note, NULL, &t, &err), 0);
    for (char *word = strsep(&at, " "); word; word = strsep(&at, " ")) {
        struct dec_event e = {.time = strtoul(word, &word, 10),
                              .from = KERNEL,
                              .to = KERNEL + 1,
                              .kind = DEC_JUMP,
                              .flags = DEC_KERNEL_FROM | DEC_KERNEL_TO};

        if (!strcmp(word, "on") || !strcmp(word, "uon")) {
            e.kind = DEC_ENABLE;
            e.flags = word[0] == 'u' ? 0 : DEC_KERNEL_TO;
        } else if (!strcmp(word, "off")) {
            e.kind = DEC_DISABLE;
        } else if (!strcmp(word, "u")) {
            e.flags = 0;
        } else if (!strcmp(word, "s")) {
            e.to = KERNEL + SWITCH_TO;
        }
        assert_int_equal(dec_turns_emit(t, &info, &e, 1, NULL), 0);
    }
    dec_turns_free(t);
    free(copy);
    st_vec_free(&sb.cpus.at[0].turns);
    st_vec_free(&sb.cpus);
    st_vec_free(&sb.rings);
    return text;
}

static const struct dec_turn two[] = {{100, 200, 200, &a}, {300, 400, 400, &b}};

static void by_time(void **state)
{
    (void)state;
    assert_string_equal(told(two, 2, true, "50u 100u 150u 300u 399u 500u"),
                        "50:1 100:1 150:1 300:2 399:2 500:2 ");
}

/* A trace of one thread: it goes on a little behind the record of its leaving, and begins a little before
 * that of its coming. */
static void stopped_and_started_between_the_records(void **state)
{
    (void)state;
    assert_string_equal(told(two, 2, true, "150k 210k 220off 290on 295k 305k"),
                        "150:1 210:1 220:1 290:2 295:2 305:2 ");
    assert_string_equal(told(two, 2, false, "150k 210k 220off 290on 295k 305k"),
                        "150:1 210:1 220:1 290:2 295:2 305:2 ");
}

/* A trace of the CPU: the change is at __switch_to, in between. */
static void handed_over_at_switch_to(void **state)
{
    (void)state;
    assert_string_equal(told(two, 2, true, "150k 210k 250s 260k 305k"), "150:1 210:1 250:1 260:2 305:2 ");
}

/* The trace's clock is a little off: the branch to __switch_to seems to lie before or behind both records. */
static void handed_over_with_a_clock_that_is_off(void **state)
{
    (void)state;
    assert_string_equal(told(two, 2, true, "150k 190s 195k 210k 305k"), "150:1 190:1 195:2 210:2 305:2 ");
    assert_string_equal(told(two, 2, true, "150k 210k 305k 310s 315k 320u"),
                        "150:1 210:1 305:1 310:1 315:2 320:2 ");
}

/* It was never seen (a gap): user code is the new thread's. */
static void never_handed_over(void **state)
{
    (void)state;
    assert_string_equal(told(two, 2, true, "150k 210k 305u 310k"), "150:1 210:1 305:2 310:2 ");
    assert_string_equal(told(two, 2, false, "150k 210k 305k 310k"), "150:1 210:1 305:2 310:2 ");
}

static void three_in_a_row(void **state)
{
    const struct dec_turn turns[] = {{100, 200, 200, &a}, {210, 220, 220, &b}, {230, 400, 400, &c}};

    (void)state;
    assert_string_equal(told(turns, 3, true, "150k 205s 206k 212k 225s 226k 240u"),
                        "150:1 205:1 206:2 212:2 225:2 226:3 240:3 ");
    assert_string_equal(told(turns, 3, true, "150k 240u"), "150:1 240:3 ");
}

static void without_switches_nothing_changes(void **state)
{
    (void)state;
    assert_string_equal(told(NULL, 0, true, "150k 240u"), "150:9 240:9 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_time),
        cmocka_unit_test(stopped_and_started_between_the_records),
        cmocka_unit_test(handed_over_at_switch_to),
        cmocka_unit_test(handed_over_with_a_clock_that_is_off),
        cmocka_unit_test(never_handed_over),
        cmocka_unit_test(three_in_a_row),
        cmocka_unit_test(without_switches_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
