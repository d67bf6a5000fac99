/* The thread that works beside the loop: order, what is handed back and where, errors, the end. */
#include "base/loop.h"
#include "recorder/arm/clerk.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TASKS = 50 };

struct work {
    struct rec_task task;

    int number;

    bool elsewhere; /* it ran in another thread */

    int rc; /* of done */
};

static pthread_t own;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static int worked[TASKS], back[TASKS];
static atomic_int nworked;
static int nback;

static void work(struct rec_task *task)
{
    struct work *w = (struct work *)task;

    pthread_mutex_lock(&gate);
    worked[nworked++] = w->number;
    pthread_mutex_unlock(&gate);
    w->elsewhere = !pthread_equal(pthread_self(), own);
}

static int done(void *ctx, struct rec_task *task, struct st_error *err)
{
    struct work *w = (struct work *)task;

    assert_string_equal(ctx, "ctx");
    assert_true(pthread_equal(pthread_self(), own));
    assert_true(w->elsewhere);
    back[nback++] = w->number;
    return w->rc ? st_fail(err, w->rc, "task %d", w->number) : 0;
}

struct world {
    int loop;

    struct rec_clerk *clerk;

    struct work works[TASKS];
};

static int begin(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    own = pthread_self();
    nback = 0;
    atomic_store(&nworked, 0);
    w->loop = rec_loop_open(NULL);
    assert_true(w->loop >= 0);
    assert_int_equal(rec_clerk_open(w->loop, done, "ctx", &w->clerk, NULL), 0);
    for (int i = 0; i < TASKS; i++)
        w->works[i] = (struct work){.task.work = work, .number = i};
    *state = w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;

    rec_clerk_close(w->clerk);
    close(w->loop);
    free(w);
    return 0;
}

static void give(struct world *w, int from, int to)
{
    for (int i = from; i < to; i++)
        rec_clerk_give(w->clerk, &w->works[i].task);
}

static void in_order(int n)
{
    assert_int_equal(nback, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(worked[i], i);
        assert_int_equal(back[i], i);
    }
}

static void the_loop_gets_them_back(void **state)
{
    struct world *w = *state;

    give(w, 0, TASKS);
    while (rec_clerk_busy(w->clerk))
        assert_int_equal(rec_loop_turn(w->loop, NULL), 0);
    in_order(TASKS);
}

/* Giving waits for nobody, and what was given counts until it is back. */
static void nothing_waits_for_the_work(void **state)
{
    struct world *w = *state;

    pthread_mutex_lock(&gate);
    give(w, 0, 3);
    assert_int_equal(rec_clerk_busy(w->clerk), 3);
    assert_int_equal(atomic_load(&nworked), 0);
    pthread_mutex_unlock(&gate);
    while (atomic_load(&nworked) < 3)
        usleep(100);
    assert_int_equal(rec_clerk_busy(w->clerk), 3);
    assert_int_equal(rec_clerk_finish(w->clerk, NULL), 0);
    assert_int_equal(rec_clerk_busy(w->clerk), 0);
    in_order(3);
}

/* Both ways of handing back together, and again afterwards. */
static void finishing_leaves_it_usable(void **state)
{
    struct world *w = *state;

    give(w, 0, 10);
    assert_int_equal(rec_loop_turn(w->loop, NULL), 0);
    assert_int_equal(rec_clerk_finish(w->clerk, NULL), 0);
    assert_int_equal(rec_clerk_finish(w->clerk, NULL), 0);
    give(w, 10, TASKS);
    while (rec_clerk_busy(w->clerk))
        assert_int_equal(rec_loop_turn(w->loop, NULL), 0);
    in_order(TASKS);
}

static void an_error_keeps_no_task_back(void **state)
{
    struct world *w = *state;
    struct st_error err = {0};

    w->works[1].rc = ST_EFAIL;
    w->works[3].rc = ST_ENOMEM;
    give(w, 0, 5);
    assert_int_equal(rec_clerk_finish(w->clerk, &err), ST_EFAIL);
    assert_string_equal(err.text, "task 1");
    in_order(5);
}

static void none_is_never_busy(void **state)
{
    (void)state;
    assert_int_equal(rec_clerk_busy(NULL), 0);
    assert_int_equal(rec_clerk_finish(NULL, NULL), 0);
    rec_clerk_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_loop_gets_them_back, begin, end),
        cmocka_unit_test_setup_teardown(nothing_waits_for_the_work, begin, end),
        cmocka_unit_test_setup_teardown(finishing_leaves_it_usable, begin, end),
        cmocka_unit_test_setup_teardown(an_error_keeps_no_task_back, begin, end),
        cmocka_unit_test(none_is_never_busy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
