/* A ring of context switches that is read while it is written: nothing torn, nothing twice, nothing that is
 * missing without a count. */
#include "triggers/select_ring.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct select_ring ring;
static struct select_switch copy[SELECT_RING];

/* As the BPF program does. */
static void write_one(void)
{
    uint64_t n = ring.head;

    ring.at[n % SELECT_RING] = (struct select_switch){.time = n,
                                                      .prev_pid = (uint32_t)n,
                                                      .prev_tid = (uint32_t)n,
                                                      .next_pid = (uint32_t)n,
                                                      .next_tid = (uint32_t)n,
                                                      .preempt = (uint32_t)n};
    __atomic_store_n(&ring.head, n + 1, __ATOMIC_RELEASE);
}

static void write_many(uint64_t n)
{
    while (n--)
        write_one();
}

/* The last ones, without a hole, up to `taken`. */
static void check(const struct trg_select_switches *s, uint64_t taken)
{
    uint64_t first = taken - s->n;

    for (size_t i = 0; i < s->n; i++) {
        const struct select_switch want = {.time = first + i,
                                           .prev_pid = (uint32_t)(first + i),
                                           .prev_tid = (uint32_t)(first + i),
                                           .next_pid = (uint32_t)(first + i),
                                           .next_tid = (uint32_t)(first + i),
                                           .preempt = (uint32_t)(first + i)};

        assert_memory_equal(&s->at[i], &want, sizeof(want));
    }
}

static void take(uint64_t *taken, size_t n, uint64_t lost)
{
    struct trg_select_switches s = trg_ring_take(&ring, taken, copy);

    assert_int_equal(s.n, n);
    assert_int_equal(s.lost, lost);
    assert_int_equal(*taken, ring.head);
    check(&s, *taken);
}

/* At the edges of the ring: the slot that comes next may be half written, so that one fewer than all is
 * taken. */
static void what_was_written_over_is_counted(void **state)
{
    static const uint64_t starts[] = {0, 1, SELECT_RING - 1, SELECT_RING, 5 * SELECT_RING + 3};
    uint64_t taken;

    (void)state;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        memset(&ring, 0, sizeof(ring));
        taken = 0;
        write_many(starts[i]);
        trg_ring_take(&ring, &taken, copy);
        take(&taken, 0, 0);
        write_one();
        take(&taken, 1, 0);
        write_many(SELECT_RING - 1);
        take(&taken, SELECT_RING - 1, 0);
        write_many(SELECT_RING);
        take(&taken, SELECT_RING - 1, 1);
        write_many(SELECT_RING + 1);
        take(&taken, SELECT_RING - 1, 2);
        write_many(10 * SELECT_RING);
        take(&taken, SELECT_RING - 1, 9 * SELECT_RING + 1);
    }
}

enum { WRITTEN = 20 * 1000 * 1000 };

static void *writer(void *arg)
{
    (void)arg;
    write_many(WRITTEN);
    return NULL;
}

/* The writer is faster than any CPU switches: it laps the reader again and again. */
static void nothing_torn_is_taken(void **state)
{
    uint64_t taken = 0, got = 0, lost = 0;
    pthread_t thread;

    (void)state;
    memset(&ring, 0, sizeof(ring));
    assert_int_equal(pthread_create(&thread, NULL, writer, NULL), 0);
    while (taken < WRITTEN) {
        struct trg_select_switches s = trg_ring_take(&ring, &taken, copy);

        check(&s, taken);
        got += s.n;
        lost += s.lost;
    }
    pthread_join(thread, NULL);
    assert_int_equal(got + lost, WRITTEN);
    assert_true(got > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_over_is_counted),
        cmocka_unit_test(nothing_torn_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
