/* Recordings of big machines: the time to read them is linear in what is in them. */
#include "recording.h"

#include "decoder/sideband/sideband.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum {
    MANY = 8000,
    TRIES = 3, /* the machine may be busy with others' work too */
};

typedef void make_fn(uint32_t n);

/* ns of the processor to read the side-band; what is in it is checked. */
static uint64_t cost(make_fn *make, uint32_t n, size_t processes, size_t threads)
{
    struct timespec from, to;
    struct pd_reader *reader = NULL;
    struct dec_images *images = NULL;
    struct dec_sideband *sb = NULL;
    struct st_error err = {0};

    recording_begin();
    make(n);
    recording_end();
    if (pd_reader_open(recording_path(), &reader, &err) || dec_images_new(NULL, &images, &err))
        fail_msg("%s", err.text);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    if (dec_sideband_read(reader, images, &sb, &err))
        fail_msg("%s", err.text);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    assert_int_equal(sb->processes.n, processes);
    assert_int_equal(sb->threads.n, threads);
    dec_sideband_free(sb);
    dec_images_free(images);
    pd_reader_close(reader);
    recording_remove();
    return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec - from.tv_nsec);
}

static uint64_t least(make_fn *make, uint32_t n, size_t processes, size_t threads)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < TRIES; i++) {
        uint64_t ns = cost(make, n, processes, threads);

        least = ns < least ? ns : least;
    }
    return least;
}

/* Linear gives 4, and some more for caches; quadratic 16. */
static void is_linear(uint64_t once, uint64_t four)
{
    print_message("%.1f ms, four times as many %.1f ms\n", (double)once / 1e6, (double)four / 1e6);
    assert_true(four <= 12 * once);
}

/* Each has a name, a program, and some time on a CPU. */
static void processes(uint32_t n)
{
    char path[64];

    for (uint32_t i = 0; i < n; i++) {
        uint32_t pid = 1000 + i;

        recording_at(1000 + i * 100ull, pid, pid, i % 64);
        recording_fork(pid, 1, pid, 1);
        recording_comm(pid, pid, "worker", true);
        snprintf(path, sizeof(path), "/nowhere/program-%u", i % 100);
        recording_mmap(pid, 0x400000, 0x1000, 0, path);
        recording_switch(false, false);
        recording_at(1050 + i * 100ull, pid, pid, i % 64);
        recording_switch(true, false);
    }
}

static void many_processes(void **state)
{
    (void)state;
    is_linear(least(processes, MANY, MANY, MANY), least(processes, 4 * MANY, 4 * MANY, 4 * MANY));
}

static void threads(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        recording_at(1000 + i * 100ull, 1000, 1000, i % 64);
        recording_fork(1000, 1000, 1000 + i, 1000);
        recording_comm(1000, 1000 + i, "worker", false);
    }
}

static void many_threads(void **state)
{
    (void)state;
    is_linear(least(threads, MANY, 1, MANY), least(threads, 4 * MANY, 1, 4 * MANY));
}

/* Of one process: a file each. */
static void maps(uint32_t n)
{
    char path[64];

    recording_at(500, 1000, 1000, 0);
    recording_comm(1000, 1000, "loader", false);
    for (uint32_t i = 0; i < n; i++) {
        recording_at(1000 + i * 100ull, 1000, 1000, 0);
        snprintf(path, sizeof(path), "/nowhere/library-%u", i);
        recording_mmap(1000, 0x10000000ull + i * 0x2000ull, 0x1000, 0, path);
    }
}

static void many_maps(void **state)
{
    (void)state;
    is_linear(least(maps, MANY, 1, 1), least(maps, 4 * MANY, 1, 1));
}

/* A ring each, of which the recorder tells. */
static void rings(uint32_t n)
{
    char text[80];

    threads(n);
    for (uint32_t i = 0; i < n; i++) {
        recording_ring(i, 1000 + i, 0, 16);
        recording_meta(text, 1 + (size_t)snprintf(text, sizeof(text),
                                                  "ring.%u=tid=%u cpu=-1 since=500 offset=16 size=16", i,
                                                  1000 + i));
    }
}

static void many_rings(void **state)
{
    (void)state;
    is_linear(least(rings, MANY, 1, MANY), least(rings, 4 * MANY, 1, 4 * MANY));
}

/* The kernel changes its code at n places, one after the other or, like a static key that is switched on and
 * off, at one. ns of the processor to note it and to read the code as it stood at every time. */
static uint64_t patches_cost(uint32_t n, uint64_t step)
{
    struct dec_code_bytes call = {(const uint8_t *)"\xe8\1\2\3\4", 5},
                          nop = {(const uint8_t *)"\x0f\x1f\x44\0\0", 5};
    struct dec_images *images = NULL;
    struct dec_image *image = NULL;
    struct dec_space *space = NULL;
    struct timespec from, to;
    uint8_t *code = calloc(1, 1 << 20), read[5];

    assert_non_null(code);
    assert_int_equal(dec_images_new(NULL, &images, NULL), 0);
    assert_int_equal(dec_images_add_bytes(images, "kernel", code, 1 << 20, &image, NULL), 0);
    assert_int_equal(dec_space_new(NULL, &space, NULL), 0);
    assert_int_equal(dec_space_map(space, 0, 0x100000, 1 << 20, 0, image, NULL), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(
            dec_space_patch(space, 10 + i, 0x100000 + i * step, i % 2 ? call : nop, i % 2 ? nop : call, NULL),
            0);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(dec_space_stable(space, 9 + i), 10 + i);
        assert_int_equal(dec_space_read(space, 10 + i, 0x100000 + i * step, read, 5), 5);
        assert_memory_equal(read, i % 2 ? nop.at : call.at, 5);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    dec_space_free(space);
    dec_images_free(images);
    return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec - from.tv_nsec);
}

static void many_patches(void **state)
{
    (void)state;
    for (uint64_t step = 0; step <= 16; step += 16) {
        uint64_t once = UINT64_MAX, four = UINT64_MAX;

        for (int i = 0; i < TRIES; i++) {
            uint64_t few = patches_cost(MANY / 2, step), more = patches_cost(2 * MANY, step);

            once = few < once ? few : once;
            four = more < four ? more : four;
        }
        is_linear(once, four);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_processes), cmocka_unit_test(many_threads), cmocka_unit_test(many_maps),
        cmocka_unit_test(many_rings),     cmocka_unit_test(many_patches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
