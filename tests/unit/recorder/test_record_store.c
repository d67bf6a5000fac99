/* The side-band in memory: order, bounds, compaction. */
#include "recorder/perf/record.h"
#include "recorder/sideband/record_log.h"
#include "recorder/sideband/record_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store_list.h"

enum {
    NOBODY = 999999999 /* a pid that no process has (pid_max is at most 2^22) */
};

static struct rec_store *open_store(size_t state, size_t events)
{
    struct rec_store_bounds bounds = {.state = state, .events = events};
    struct rec_store *store;

    assert_int_equal(rec_store_open(&bounds, &store, NULL), 0);
    return store;
}

static void add_switch(struct rec_store *store, uint64_t time)
{
    struct {
        struct perf_event_header header;

        struct rec_trailer trailer;
    } r = {.header = {.type = PERF_RECORD_SWITCH, .size = sizeof(r)}, .trailer = {.time = time}};

    assert_int_equal(rec_record_time(&r.header), time);
    assert_int_equal(rec_store_add(store, &r.header, time, NULL), 0);
}

static void add_task(struct rec_store *store, uint32_t type, uint32_t pid, uint32_t tid, uint64_t time)
{
    struct {
        struct rec_task_record task;

        struct rec_trailer trailer;
    } r = {.task = {.header = {.type = type, .size = sizeof(r)}, .pid = pid, .tid = tid},
           .trailer = {.time = time}};

    assert_int_equal(rec_store_add(store, &r.task.header, time, NULL), 0);
}

static void add_map(struct rec_store *store, uint32_t pid, uint64_t addr, uint64_t time)
{
    uint64_t buffer[64] = {0};
    struct rec_mmap2_record *m = (struct rec_mmap2_record *)buffer;
    struct rec_trailer *trailer = (struct rec_trailer *)(m->filename + 8);

    *m = (struct rec_mmap2_record){
        .header = {.type = PERF_RECORD_MMAP2}, .pid = pid, .tid = pid, .addr = addr, .len = 4096};
    memcpy(m->filename, "/lib/x", 7);
    trailer->time = time;
    m->header.size = (uint16_t)((char *)(trailer + 1) - (char *)buffer);
    assert_int_equal(rec_store_add(store, &m->header, time, NULL), 0);
}

static size_t count(const struct rec_store *store, uint32_t type, uint32_t pid)
{
    struct rec_stored *list;
    size_t n, found = 0;

    list_store(store, &list, &n);
    for (size_t i = 0; i < n; i++) {
        const struct rec_comm_record *r = (const struct rec_comm_record *)list[i].record;

        found += r->header.type == type && (!pid || r->pid == pid);
    }
    free(list);
    return found;
}

static void records_come_back_in_time_order(void **state)
{
    static const uint64_t times[] = {50, 10, 30, 30, 20};
    struct rec_store *store = open_store(0, 0);
    struct rec_stored *list;
    size_t n;

    (void)state;
    for (size_t i = 0; i < 5; i++)
        add_switch(store, times[i]);
    add_task(store, PERF_RECORD_FORK, 1, 1, 25);
    list_store(store, &list, &n);
    assert_int_equal(n, 6);
    for (size_t i = 1; i < n; i++)
        assert_true(list[i - 1].time < list[i].time ||
                    (list[i - 1].time == list[i].time && list[i - 1].seq < list[i].seq));
    assert_int_equal(list[2].record->type, PERF_RECORD_FORK);
    assert_int_equal(rec_record_time(list[2].record), 25);
    free(list);
    rec_store_close(store);
}

static void switches_are_dropped_oldest_first(void **state)
{
    struct rec_store *store = open_store(0, 1 << 20);
    struct rec_stored *list;
    struct rec_view view;
    uint64_t dropped;
    size_t n;

    (void)state;
    add_task(store, PERF_RECORD_FORK, 7, 7, 1);
    for (uint64_t t = 1; t <= 100000; t++)
        add_switch(store, t);
    assert_true(rec_store_bytes(store) <= (1 << 20) + 2 * 128 * 1024);
    assert_int_equal(rec_store_view(store, &view), 0);
    dropped = view.events_dropped;
    rec_view_free(&view);
    assert_true(dropped > 0 && dropped < 100000);
    list_store(store, &list, &n);
    /* State is not touched by it, and behind the last dropped one nothing is missing. */
    assert_int_equal(list[0].record->type, PERF_RECORD_FORK);
    assert_int_equal(n - 1, 100000 - dropped);
    for (size_t i = 1; i < n; i++)
        assert_int_equal(list[i].time, dropped + i);
    free(list);
    rec_store_close(store);
}

/* Whatever the store gets, drops and compacts, and though it is closed. */
static void a_view_stays_as_it_is(void **state)
{
    struct rec_store *store = open_store(1 << 20, 1 << 20);
    struct rec_stored *list;
    struct rec_view view, later;

    (void)state;
    for (uint32_t i = 1; i <= 100; i++)
        add_task(store, PERF_RECORD_FORK, NOBODY, NOBODY + i, i);
    for (uint64_t t = 101; t <= 200; t++)
        add_switch(store, t);
    assert_int_equal(rec_store_view(store, &view), 0);
    for (uint32_t i = 201; i <= 100000; i++) {
        add_task(store, PERF_RECORD_EXIT, NOBODY, NOBODY + i, i);
        add_switch(store, i);
    }
    assert_int_equal(rec_store_view(store, &later), 0);
    assert_int_equal(view.events_dropped, 0);
    assert_true(later.events_dropped > 200);
    rec_store_close(store);
    assert_int_equal(view.n, 200);
    assert_int_equal(rec_view_sorted(&view, &list, NULL), 0);
    for (size_t i = 0; i < view.n; i++) {
        assert_int_equal(list[i].time, i + 1);
        assert_int_equal(list[i].record->type, i < 100 ? PERF_RECORD_FORK : PERF_RECORD_SWITCH);
    }
    free(list);
    rec_view_free(&view);
    rec_view_free(&later);
}

/* A thread pool that makes and ends threads for ever must not fill the memory. */
static void threads_that_ended_are_compacted(void **state)
{
    struct rec_store *store = open_store(1 << 20, 0);
    uint64_t time = 1;

    (void)state;
    add_task(store, PERF_RECORD_FORK, (uint32_t)getpid(), (uint32_t)getpid(), time++);
    for (uint32_t tid = 5000000; tid < 5100000; tid++) {
        add_task(store, PERF_RECORD_FORK, (uint32_t)getpid(), tid, time++);
        add_task(store, PERF_RECORD_EXIT, (uint32_t)getpid(), tid, time++);
    }
    assert_true(rec_store_bytes(store) < 3 << 20);
    /* The main thread's birth is the oldest record of all and still there; so are the newest threads. */
    assert_true(count(store, PERF_RECORD_FORK, 0) > 1000);
    {
        struct rec_stored *list;
        size_t n;

        list_store(store, &list, &n);
        assert_int_equal(((const struct rec_task_record *)list[0].record)->tid, getpid());
        assert_int_equal(((const struct rec_task_record *)list[n - 1].record)->tid, 5099999);
        free(list);
    }
    rec_store_close(store);
}

/* dlopen and dlclose for ever: the kernel tells of every mmap, and of no munmap. */
static void repeated_mappings_are_compacted(void **state)
{
    struct rec_store *store = open_store(1 << 20, 0);
    uint64_t time = 1;

    (void)state;
    add_map(store, (uint32_t)getpid(), 0x400000, time++);
    for (int i = 0; i < 50000; i++)
        add_map(store, (uint32_t)getpid(), 0x7f0000000000 + (uint64_t)(i % 4) * 4096, time++);
    assert_true(rec_store_bytes(store) < 3 << 20);
    {
        struct rec_stored *list;
        size_t n;

        list_store(store, &list, &n);
        assert_int_equal(((const struct rec_mmap2_record *)list[0].record)->addr, 0x400000);
        for (size_t i = n - 4; i < n; i++)
            assert_int_equal(list[i].time, 50001 - (n - 1 - i));
        free(list);
    }
    rec_store_close(store);
}

static void only_what_is_stale_is_marked(void **state)
{
    struct rec_store *store = open_store(0, 0);
    struct rec_stored *list;
    bool drop[16] = {false};
    size_t n;

    (void)state;
    add_task(store, PERF_RECORD_FORK, NOBODY, NOBODY, 1); /* 0: ended, process gone */
    add_map(store, NOBODY, 0x1000, 2);                    /* 1 */
    add_task(store, PERF_RECORD_EXIT, NOBODY, NOBODY, 3); /* 2 */
    add_task(store, PERF_RECORD_FORK, NOBODY, NOBODY, 4); /* 3: the same number again, not ended */
    add_map(store, NOBODY, 0x2000, 5);                    /* 4 */
    add_task(store, PERF_RECORD_FORK, (uint32_t)getpid(), 77, 6);
    add_task(store, PERF_RECORD_EXIT, (uint32_t)getpid(), 77, 7); /* the younger half: stays */
    list_store(store, &list, &n);
    assert_int_equal(n, 7);
    assert_int_equal(rec_store_mark_stale(list, n, drop), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(drop[i], i < 3);
    free(list);
    rec_store_close(store);
}

static void nothing_in_nothing_out(void **state)
{
    struct rec_store *store = open_store(0, 0);
    struct rec_stored *list;
    size_t n = 1;

    (void)state;
    list_store(store, &list, &n);
    assert_int_equal(n, 0);
    free(list);
    rec_store_close(store);
    rec_store_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_in_time_order),
        cmocka_unit_test(switches_are_dropped_oldest_first),
        cmocka_unit_test(a_view_stays_as_it_is),
        cmocka_unit_test(threads_that_ended_are_compacted),
        cmocka_unit_test(repeated_mappings_are_compacted),
        cmocka_unit_test(only_what_is_stale_is_marked),
        cmocka_unit_test(nothing_in_nothing_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
