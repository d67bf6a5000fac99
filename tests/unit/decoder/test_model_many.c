/* Traces that lost packets very often: the time of the database is linear in the losses. */
#include "model_world.h"
#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

enum {
    MANY = 5000,
    THREADS = 50,
    TURN = 1000, /* ns */
    TRIES = 3,   /* the machine may be busy with others' work too */
};

/* Whose branches a loss stands between. */
enum ring_of { OF_CPU, OF_THREAD };

static uint64_t processor_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Threads take turns on CPU 0, or one has all of them. */
static void turns(enum ring_of of, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t tid = 10 + (of == OF_CPU ? i % THREADS : 0);

        recording_at(1000 + i * (uint64_t)TURN, 10, tid, 0);
        recording_switch(false, false);
        recording_at(1000 + i * (uint64_t)TURN + TURN / 2, 10, tid, 0);
        recording_switch(true, false);
    }
}

/* A loss in each turn; of a CPU's ring it goes on into the next thread's turn. ns of the processor for the
 * database, of which only the number of gaps is looked at. */
static uint64_t cost(enum ring_of of, uint32_t n)
{
    char expected[64];
    uint64_t from;

    world_set_up(NULL);
    turns(of, n);
    world_load(of == OF_CPU ? -2 : 10);
    from = processor_ns();
    for (uint32_t i = 0; i < n; i++) {
        int32_t tid = (int32_t)(10 + (of == OF_CPU ? i % THREADS : 0));
        uint64_t at = 1000 + i * (uint64_t)TURN;

        world_emit(tid, at + 50, DEC_ENABLE, 0, 0x1000, 0);
        world_emit(tid, at + 60, DEC_JUMP, 0x1008, 0x1000, 0);
        world_emit(tid, at + 400, DEC_GAP, DEC_GAP_OVERFLOW, 0, 0);
    }
    world_store();
    from = processor_ns() - from;
    snprintf(expected, sizeof(expected), "%u\n", of == OF_CPU ? 2 * n - 1 : n);
    assert_string_equal(world_query("SELECT count(*) FROM gaps WHERE reason = 'overflow'"), expected);
    world_tear_down(NULL);
    return from;
}

/* Each thread has a ring: every other one's was overwritten, or holds nothing. ns of the processor for the
 * database. */
static uint64_t cost_of_rings(enum ring_of of, uint32_t n)
{
    char text[80];
    uint64_t from;

    (void)of;
    world_set_up(NULL);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t tid = 10 + i;
        int size = snprintf(text, sizeof(text), "ring.%u=tid=%u cpu=-1 since=%u offset=%u size=16", i, tid,
                            1000 + i, i % 2 * 16);

        recording_at(1000 + i, 10, tid, 0);
        recording_switch(false, false);
        recording_meta(text, (size_t)size + 1);
        if (i % 2)
            recording_ring(i, tid, 16, 16);
    }
    from = processor_ns();
    world_load(0);
    world_sb->snapshot = true;
    for (uint32_t i = 0; i < world_sb->rings.n; i++) {
        struct dec_stream_info info = {.pid = 10, .tid = world_sb->rings.at[i].tid, .ring = i};
        struct dec_event events[] = {{.time = 2000 + n, .kind = DEC_GAP, .arg = DEC_GAP_OVERWRITTEN},
                                     {.time = 3000 + n, .kind = DEC_ENABLE, .to = 0x1000}};

        assert_int_equal(dec_model_emit(world_model, &info, events, 1, "older"), 0);
        assert_int_equal(dec_model_emit(world_model, &info, events + 1, 1, NULL), 0);
    }
    world_store();
    from = processor_ns() - from;
    snprintf(text, sizeof(text), "%u\n", n / 2);
    assert_string_equal(world_query("SELECT count(*) FROM gaps WHERE reason = 'overwritten'"), text);
    world_tear_down(NULL);
    return from;
}

typedef uint64_t cost_fn(enum ring_of of, uint32_t n);

static uint64_t least(cost_fn *cost, enum ring_of of, uint32_t n)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < TRIES; i++) {
        uint64_t ns = cost(of, n);

        least = ns < least ? ns : least;
    }
    return least;
}

/* Linear gives 4, and some more for caches; quadratic 16. */
static void is_linear(cost_fn *cost, enum ring_of of)
{
    uint64_t once = least(cost, of, MANY), four = least(cost, of, 4 * MANY);

    print_message("%.1f ms, four times as many %.1f ms\n", (double)once / 1e6, (double)four / 1e6);
    assert_true(four <= 12 * once);
}

static void losses_of_a_cpu_on_which_threads_take_turns(void **state)
{
    (void)state;
    is_linear(cost, OF_CPU);
}

static void losses_of_a_thread(void **state)
{
    (void)state;
    is_linear(cost, OF_THREAD);
}

static void threads_with_rings(void **state)
{
    (void)state;
    is_linear(cost_of_rings, OF_THREAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_of_a_cpu_on_which_threads_take_turns),
        cmocka_unit_test(losses_of_a_thread),
        cmocka_unit_test(threads_with_rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
