/* The stack builder: threads with very many stacks. Time is linear in what they do. */
#include "decoder/callstack/stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

enum {
    MANY = 8000,
    TRIES = 3, /* the machine may be busy with others' work too */
};

enum { MAIN, ENTRY, WAIT, SWAP, NFUNCTIONS };

static struct dec_function functions[NFUNCTIONS];

static uint64_t at(unsigned function, uint64_t offset)
{
    return 0x1000 * (function + 1ull) + offset;
}

static const struct dec_function *function(void *ctx, uint64_t time, uint64_t address)
{
    (void)ctx;
    (void)time;
    assert_true(address >= at(MAIN, 0) && address < at(NFUNCTIONS, 0));
    return &functions[address / 0x1000 - 1];
}

static int segment(void *ctx, const struct tdb_span *calls, const struct tdb_work *work, size_t n,
                   struct st_error *err)
{
    size_t *sum = ctx;

    (void)calls;
    (void)work;
    (void)err;
    *sum += n;
    return 0;
}

static void branch(struct dec_stack *s, enum dec_kind kind, uint64_t from, uint64_t to)
{
    static uint64_t now;
    struct dec_event e = {.time = now++, .from = from, .to = to, .kind = (uint16_t)kind, .flags = DEC_TAKEN};

    if (kind == DEC_CALL)
        e.flags |= 5 << DEC_LENGTH_SHIFT;
    assert_int_equal(dec_stack_events(s, &e, 1, NULL), 0);
}

/* main begins n goroutines, each of which waits in WAIT; then each has a turn and waits there again. */
static void goroutines(struct dec_stack *s, uint32_t n)
{
    branch(s, DEC_ENABLE, 0, at(MAIN, 0));
    for (uint32_t i = 0; i < n; i++) {
        branch(s, DEC_CALL, at(MAIN, 16), at(SWAP, 0));
        branch(s, DEC_RETURN, at(SWAP, 40), at(ENTRY, 0));
        branch(s, DEC_CALL, at(ENTRY, 16), at(WAIT, 0));
        branch(s, DEC_CALL, at(WAIT, 16), at(SWAP, 0));
        branch(s, DEC_RETURN, at(SWAP, 40), at(MAIN, 21));
    }
    for (uint32_t i = 0; i < n; i++) {
        branch(s, DEC_CALL, at(MAIN, 16), at(SWAP, 0));
        branch(s, DEC_RETURN, at(SWAP, 40), at(WAIT, 21));
        branch(s, DEC_CALL, at(WAIT, 16), at(SWAP, 0));
        branch(s, DEC_RETURN, at(SWAP, 40), at(MAIN, 21));
    }
}

/* ns of the processor; what became of it is checked. */
static uint64_t cost(uint32_t n)
{
    struct timespec from, to;
    struct dec_stack *s;
    size_t calls = 0;
    struct dec_stack_config config = {.ctx = &calls, .function = function, .segment = segment};

    for (unsigned i = 0; i < NFUNCTIONS; i++)
        functions[i] =
            (struct dec_function){.start = at(i, 0), .end = at(i, 0x1000), .symbol = i, .family = i};
    assert_int_equal(dec_stack_open(&config, &s, NULL), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    goroutines(s, n);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    assert_int_equal(dec_stack_finish(s, UINT64_MAX / 2, NULL), 0);
    assert_int_equal(dec_stack_counts(s)->switches, 2 * n);
    assert_int_equal(dec_stack_counts(s)->strays, 0);
    assert_int_equal(calls, 1 + 8 * n);
    dec_stack_close(s);
    return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec - from.tv_nsec);
}

static uint64_t least(uint32_t n)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < TRIES; i++) {
        uint64_t ns = cost(n);

        least = ns < least ? ns : least;
    }
    return least;
}

/* Linear gives 4, and some more for caches; quadratic 16. */
static void goroutines_that_wait_in_one_place(void **state)
{
    uint64_t once = least(MANY), four = least(4 * MANY);

    (void)state;
    print_message("%.1f ms, four times as many %.1f ms\n", (double)once / 1e6, (double)four / 1e6);
    assert_true(four <= 12 * once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goroutines_that_wait_in_one_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
