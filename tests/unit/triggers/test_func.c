/* func and call against a program that notes when it calls what, and for how long. */
#include "spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int lengths[ABOVE + BELOW] = {30, 2,  25, 35, 1, 3,  45, 30, 25, 5,
                                           30, 35, 2,  30, 4, 25, 30, 1,  28, 33};

static volatile int depth_seen;

__attribute__((noinline)) long st_test_slow(long ms, long inner)
{
    uint64_t start = workload_now();

    if (inner)
        depth_seen += (int)st_test_slow(ms / 2, inner - 1);
    while (workload_now() - start < (uint64_t)ms * MS) /* half of the calls compute, half sleep */
        if (ms % 2)
            workload_sleep_ms(1);
    return ms * 2;
}

static jmp_buf out;

__attribute__((noinline)) void st_test_jumps(long jump)
{
    if (jump)
        longjmp(out, 1);
    workload_sleep_ms(30);
    __asm__ volatile("" ::: "memory");
}

static void call_slow(struct workload *w)
{
    for (int i = 0; i < ABOVE + BELOW; i++) {
        uint64_t start = workload_now();

        st_test_slow(lengths[i], i % 3);
        workload_end(w, start);
        workload_sleep_ms(i % 4);
    }
}

static void test_slow_calls(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    spans_run(&work, call_slow, &w, "func:st_test_slow>20ms", ABOVE + BELOW, ABOVE);
    assert_string_equal(trg_hook(w.set, 0), "uprobe");
    assert_true(spans_assert(&work, &w, ST_STALL_FUNC, 20 * MS, 2 * MS) >= ABOVE);
    for (size_t i = 0; i < w.records.n; i++) {
        char twice[24];

        r = &w.records.at[i].r;
        if (r->flags & ST_STALL_ONGOING)
            continue;
        snprintf(twice, sizeof(twice), "%ld", 2 * atol(spans_attribute(r, "arg0")));
        assert_string_equal(spans_attribute(r, "ret"), twice);
        assert_true(told_has_address_in(r->ustack, r->ustack_n, (void *)call_slow, 256));
    }
    told_describe(&w, watch_first(&w, work.pid, 0, ST_STALL_ONGOING), text, sizeof(text));
    assert_non_null(strstr(text, " ms in the function (returned "));
    watch_stop(&w);
    workload_wait(&work);
}

static void test_conditions(void **state)
{
    size_t even = 0;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    for (int i = 0; i < ABOVE + BELOW; i++)
        even += lengths[i] == 30;
    spans_run(&work, call_slow, &w, "func:st_test_slow>20ms,if=arg0==30&&ret==60", ABOVE + BELOW, even);
    assert_int_equal(told_fired(&w, 0, -1), even);
    watch_stop(&w);
    workload_wait(&work);
}

/* A call that is left by a jump is no stall, and the next is one of its own. */
static void jump_and_call(struct workload *w)
{
    for (int i = 0; i < 5; i++) {
        uint64_t start;

        if (!setjmp(out))
            st_test_jumps(1);
        start = workload_now();
        st_test_jumps(0);
        workload_end(w, start);
    }
}

static void test_jumps(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    spans_run(&work, jump_and_call, &w, "func:st_test_jumps>20ms", 5, 5);
    assert_int_equal(spans_assert(&work, &w, ST_STALL_FUNC, 20 * MS, 2 * MS), 5);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- threads born later ---- */

enum { THREADS = 13 };

static void *call_in_thread(void *arg)
{
    uint64_t start = workload_now();

    st_test_slow(31, 0);
    workload_end(arg, start);
    return NULL;
}

static void call_in_threads(struct workload *w)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, call_in_thread, w))
            _exit(1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void test_threads_born_later(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    spans_run(&work, call_in_threads, &w, "func:st_test_slow>20ms", THREADS, THREADS);
    assert_int_equal(spans_assert(&work, &w, ST_STALL_FUNC, 20 * MS, 20 * MS), THREADS);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- one that does not return ---- */

static void call_long(struct workload *w)
{
    st_test_slow(401, 0);
    w->shared->note[0] = 1;
}

static void test_hang(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    r = spans_hang(&work, call_long, &w, "func:st_test_slow>20ms");
    assert_true(r->measured_ns >= 60 * MS);
    assert_int_equal(r->end_ktime, 0);
    assert_string_equal(spans_attribute(r, "arg0"), "401");
    spans_wait_completion(&w, work.pid);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED), 1);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_FIRED, 0), 1);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- call ---- */

__attribute__((noinline)) long st_test_called(long which, long twice)
{
    __asm__ volatile("" ::: "memory");
    return which + twice;
}

static void call_often(struct workload *w)
{
    for (int i = 0; i < ABOVE; i++) {
        uint64_t start = workload_now();

        st_test_called(i, 2 * i);
        workload_end(w, start);
        workload_sleep_ms(2);
    }
}

static void test_each_call_fires(void **state)
{
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    spans_run(&work, call_often, &w, "call:st_test_called", ABOVE, ABOVE);
    spans_sort(&w);
    assert_int_equal(told_fired(&w, 0, -1), ABOVE);
    for (uint32_t i = 0; i < ABOVE; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;
        char number[16];

        snprintf(number, sizeof(number), "%u", 2 * i);
        assert_int_equal(r->kind, ST_STALL_CALL);
        assert_int_equal(r->tid, work.pid);
        assert_true(r->start_ktime >= work.shared->stall[i].start_ns &&
                    r->end_ktime <= work.shared->stall[i].end_ns);
        assert_string_equal(spans_attribute(r, "arg1"), number);
        assert_true(told_has_address_in(r->ustack, r->ustack_n, (void *)st_test_called, 16));
    }
    told_describe(&w, &w.records.at[3].r, text, sizeof(text));
    assert_non_null(strstr(text, " called the function (3, 6, "));
    watch_stop(&w);
    workload_wait(&work);
    spans_run(&work, call_often, &w, "call:st_test_called,if=arg0>=10", ABOVE, 3);
    assert_int_equal(told_fired(&w, 0, -1), 3);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- names ---- */

static int open_error(const char *text, char *message, size_t size)
{
    struct st_target target = {0};
    struct trg_config config = {.target = &target};
    struct st_error err = {0};
    struct trg_set *set = NULL;
    char pid[16];
    int rc;

    snprintf(pid, sizeof(pid), "%d", getpid());
    assert_int_equal(st_target_add_pids(&target, pid, &err), 0);
    assert_int_equal(st_target_resolve(&target, &err), 0);
    assert_int_equal(trg_add(&set, text, &err), 0);
    rc = trg_open(set, &config, &err);
    snprintf(message, size, "%s", err.text);
    trg_close(set);
    st_target_free(&target);
    return rc;
}

int st_test_versioned(void); /* versioned.c */

static void test_names(void **state)
{
    char message[1024];

    (void)state;
    NEEDS_BPF();
    assert_int_equal(open_error("call:st_test_caled", message, sizeof(message)), ST_EUSAGE);
    assert_non_null(strstr(message, "did you mean 'st_test_called'?"));
    assert_int_equal(open_error("call:libc!mallok", message, sizeof(message)), ST_EUSAGE);
    assert_non_null(strstr(message, "no function 'mallok' in libc"));
    assert_int_equal(open_error("func:nosuchlib!f>1ms", message, sizeof(message)), ST_EUSAGE);
    assert_non_null(strstr(message, "no file 'nosuchlib' is mapped by the target"));
    assert_int_equal(open_error("call:libc!fopen", message, sizeof(message)), 0);
    assert_int_equal(st_test_versioned(), 1);
    assert_int_equal(open_error("call:st_test_versioned", message, sizeof(message)), 0);
    assert_int_equal(open_error("func:libc.so.6!malloc>1ms", message, sizeof(message)), 0);
}

/* What Go's linker makes of a program: its code between two names. */
__asm__(".text\n"
        ".globl runtime.text\n.type runtime.text, @function\nruntime.text:\n"
        ".globl main.handle\n.type main.handle, @function\nmain.handle: ret\n.size main.handle, 1\n"
        ".globl runtime.etext\n.type runtime.etext, @function\nruntime.etext: ret\n");

/* The probe on a return is in the way when Go moves a stack; one on the entry is not. */
static void test_go_function_is_refused(void **state)
{
    char message[1024];

    (void)state;
    NEEDS_BPF();
    assert_int_equal(open_error("func:main.handle>1ms", message, sizeof(message)), ST_ECANNOT);
    assert_non_null(strstr(message, "is a function of Go"));
    assert_non_null(strstr(message, "--on 'call:main.handle'"));
    assert_int_equal(open_error("call:main.handle", message, sizeof(message)), 0);
    assert_int_equal(open_error("func:st_test_called>1ms", message, sizeof(message)), 0);
}

/* Where it can be seen it is, by what the trigger says; where not, the message says what lacks. */
static void test_kernel_function(void **state)
{
    char message[1024];
    int rc;

    (void)state;
    NEEDS_BPF();
    rc = open_error("func:kernel!do_nanosleep>1ms", message, sizeof(message));
    assert_true(rc == 0 || rc == ST_ECANNOT);
    if (rc)
        assert_non_null(strstr(message, "neither fentry nor kprobes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_calls),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_threads_born_later),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_each_call_fires),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_kernel_function),
        cmocka_unit_test(test_go_function_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
