/* tracepoint and usdt: each hit fires, with its fields. */
#include "../../workloads/probe_note.h"
#include "observer.h"
#include "spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static __attribute__((noinline)) void hit_once(int i)
{
    probe(i);
    if (syscall(SYS_getpriority, 0, i + 1000000) == 12345) /* fails: there is no such process */
        _exit(1);
}

static __attribute__((noinline)) void hit_often(struct workload *w)
{
    prctl(PR_SET_NAME, "hits-often");
    for (int i = 0; i < ABOVE; i++) {
        uint64_t start = workload_now();

        hit_once(i);
        workload_end(w, start);
        workload_sleep_ms(1);
    }
}

static void expect(const char *trigger, enum st_stall_kind kind, size_t fired, const char *key, int first)
{
    struct workload work;
    struct watch w;

    spans_run(&work, hit_often, &w, trigger, ABOVE, fired);
    if (told_fired(&w, 0, -1) != fired)
        fail_msg("%s: %zu fired, not %zu", trigger, told_fired(&w, 0, -1), fired);
    spans_sort(&w);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        assert_int_equal(r->kind, kind);
        assert_int_equal(r->tid, work.pid);
        assert_int_equal(atoi(spans_attribute(r, key)), first + (int)i);
        assert_true(r->start_ktime >=
                    work.shared->stall[first + (int)i - (key[0] == 'w' ? 1000000 : 0)].start_ns);
        assert_true(told_has_address_in(r->ustack, r->ustack_n, (void *)hit_often, 512));
    }
    watch_stop(&w);
    workload_wait(&work);
}

/* There are no spaces in a trigger, and there may be in the path of a clone. */
#define OURSELVES "/proc/self/exe"

static void test_usdt(void **state)
{
    (void)state;
    NEEDS_BPF();
    expect("usdt:" OURSELVES ":st_test:beat", ST_STALL_USDT, ABOVE, "arg0", 0);
    expect("usdt:" OURSELVES ":st_test:beat,if=arg0>=8&&arg1==7", ST_STALL_USDT, ABOVE - 8, "arg0", 8);
    expect("usdt:" OURSELVES ":st_test:beat,if=arg1==8", ST_STALL_USDT, 0, "arg0", 0);
}

static void test_tracepoint(void **state)
{
    (void)state;
    NEEDS_BPF();
    if (!observer_possible())
        skip();
    expect("tracepoint:syscalls:sys_enter_getpriority", ST_STALL_TRACEPOINT, ABOVE, "who", 1000000);
    expect("tracepoint:syscalls:sys_enter_getpriority,if=who>=1000010&&which==0", ST_STALL_TRACEPOINT,
           ABOVE - 10, "who", 1000010);
    expect("tracepoint:syscalls:sys_enter_getpriority,if=who&0x80000000", ST_STALL_TRACEPOINT, 0, "who", 0);
}

/* A text field, near and in the record's head. */
static void test_tracepoint_text(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    if (!observer_possible())
        skip();
    spans_run(&work, hit_often, &w,
              "tracepoint:sched:sched_switch,if=prev_comm==\"hits-often\"&&prev_state!=0", ABOVE, ABOVE);
    assert_true(told_fired(&w, 0, -1) >= ABOVE);
    for (size_t i = 0; i < w.records.n; i++)
        assert_int_equal(atoi(spans_attribute(&w.records.at[i].r, "prev_pid")), work.pid);
    watch_stop(&w);
    workload_wait(&work);
    spans_run(&work, hit_often, &w, "tracepoint:sched:sched_switch,if=prev_comm==\"others\"", ABOVE, 0);
    assert_int_equal(told_fired(&w, 0, -1), 0);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- an object of the user's own ---- */

static void yield_often(struct workload *w)
{
    for (int i = 0; i < 2 * ABOVE; i++) {
        uint64_t start = workload_now();

        sched_yield();
        workload_end(w, start);
    }
}

static void test_user_object(void **state)
{
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    if (!observer_possible())
        skip();
    spans_run(&work, yield_often, &w, "bpf:tests/user.bpf.o", 2 * ABOVE, ABOVE);
    assert_int_equal(told_fired(&w, 0, -1), ABOVE);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        assert_int_equal(r->kind, ST_STALL_BPF);
        assert_int_equal(r->tid, work.pid);
        assert_true(r->measured_ns >= 5 * MS); /* and what passed between two looks at the clock */
        assert_string_equal(spans_attribute(r, "color"), "blue");
        assert_true(told_has_address_in(r->ustack, r->ustack_n, (void *)yield_often, 512) || r->ustack_n > 1);
    }
    told_describe(&w, &w.records.at[0].r, text, sizeof(text));
    assert_non_null(strstr(text, " fired the BPF object after "));
    assert_non_null(strstr(text, "(color=blue)"));
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- names that are only known when it is armed ---- */

static void refuse(const char *text, int code, const char *says)
{
    struct st_target target = {.kind = ST_TARGET_ALL};
    struct trg_config config = {.target = &target};
    struct st_error err = {0};
    struct trg_set *set = NULL;

    assert_int_equal(trg_add(&set, text, &err), 0);
    assert_int_equal(trg_open(set, &config, &err), code);
    if (!strstr(err.text, says))
        fail_msg("%s\n does not say: %s", err.text, says);
    trg_close(set);
}

static void test_names(void **state)
{
    (void)state;
    NEEDS_BPF();
    if (!observer_possible())
        skip();
    refuse("tracepoint:shed:sched_switch", ST_EUSAGE, "did you mean 'sched'?");
    refuse("tracepoint:sched:sched_swich", ST_EUSAGE, "did you mean 'sched_switch'?");
    refuse("tracepoint:sched:sched_switch,if=prev_pd==3", ST_EUSAGE, "did you mean 'prev_pid'?");
    refuse("tracepoint:sched:sched_switch,if=prev_comm==3", ST_EUSAGE, "is a text");
    refuse("tracepoint:sched:sched_switch,if=prev_pid==\"x\"", ST_EUSAGE, "is a number");
    refuse("quiet:sched:sched_swich>1s", ST_EUSAGE, "did you mean 'sched_switch'?");
    refuse("bpf:/no/such/file.o", ST_EUSAGE, "cannot read /no/such/file.o");
    refuse("bpf:generated/triggers/busy.bpf.o", ST_EUSAGE, "stalltrap.bpf.h");
    refuse("usdt:/no/such/file:a:b", ST_EUSAGE, "no file '/no/such/file'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usdt),
        cmocka_unit_test(test_tracepoint),
        cmocka_unit_test(test_tracepoint_text),
        cmocka_unit_test(test_user_object),
        cmocka_unit_test(test_names),
    };

    return chdir(ST_BUILD_DIR) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
