/* Rings and records of a stepped process: wrapped, frozen, with the context switches that the program made.
 */
#include "tests/unit/recorder/step_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>

#include <cmocka.h>

/* A ring that wrapped many times decodes from its first PSB to its end, without an error: to the last that
 * ran. How many instructions that is depends on what else is in it, a time for each switch. */
static void test_wrapped_ring(void **state)
{
    const struct rec_ring *rings;
    struct pt_insn_decoder *decoder;
    struct harness_walk w = {0};
    struct pt_config config;
    struct pt_insn insn;
    struct harness x;
    uint8_t *bytes;
    uint64_t *ips, n_insns = 0;
    size_t n;
    int status;
    pid_t pid;

    (void)state;
    harness_log_begin();
    harness_fork(&x, NULL, works_on);
    pid = x.child;
    x.config.ring_bytes = 8192;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    do {
        sleep_ms(100);
        harness_freeze(&x, &rings, &n);
        if (rings[0].offset > 20000)
            break;
        harness_resume(&x);
    } while (harness_log->n < LOG_MAX);
    assert_int_equal(rings[0].size[0] + rings[0].size[1], 8192);
    bytes = test_malloc(8192);
    memcpy(bytes, rings[0].part[0], rings[0].size[0]);
    memcpy(bytes + rings[0].size[0], rings[0].part[1], rings[0].size[1]);
    pt_config_init(&config);
    config.begin = bytes;
    config.end = bytes + 8192;
    w.tid = pid;
    /* All code that ran is near the log's beginning: let libipt see any of it. */
    decoder = pt_insn_alloc_decoder(&config);
    w.any = true;
    pt_image_set_callback(pt_insn_get_image(decoder), harness_read_code, &w);
    status = pt_insn_sync_forward(decoder);
    assert_true(status >= 0);
    ips = test_calloc(harness_log->n, sizeof(*ips));
    while (n_insns < harness_log->n) {
        status = harness_events(decoder, status);
        if (status < 0 || (status & pts_eos))
            break;
        status = pt_insn_next(decoder, &insn, sizeof(insn));
        if (status < 0)
            break;
        ips[n_insns++] = insn.ip;
    }
    assert_true(status >= 0 || status == -pte_eos);
    assert_in_range(n_insns, 100, harness_log->n - 1); /* the rest was overwritten */
    for (uint64_t i = 0; i < n_insns; i++)
        assert_int_equal(ips[i], harness_log->insn[harness_log->n - n_insns + i].ip);
    test_free(ips);
    pt_insn_free_decoder(decoder);
    test_free(bytes);
    harness_resume(&x);
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
}

static _Atomic int *second_sleep; /* in memory that is shared with the program */

static int sleeps_twice(void)
{
    sleep_ms(120);
    for (int i = 0; i < 50; i++)
        syscall(SYS_getppid);
    *second_sleep = 1;
    sleep_ms(3600000);
    return 0;
}

/* Whether user code was left by `out`, and entered again at `in` or later, by the ring's packets: that it was
 * away in between. A stepper that waits for a CPU itself makes other absences, of any length. */
static bool is_away(const struct rec_ring *ring, uint64_t out, uint64_t in)
{
    uint64_t time = 0, left = 0;
    bool found = false;
    struct pt_packet_decoder *decoder;
    struct pt_config config;
    struct pt_packet p;

    pt_config_init(&config);
    config.begin = (uint8_t *)ring->part[0];
    config.end = config.begin + ring->size[0];
    decoder = pt_pkt_alloc_decoder(&config);
    assert_int_equal(pt_pkt_sync_forward(decoder), 0);
    while (pt_pkt_next(decoder, &p, sizeof(p)) > 0) {
        if (p.type == ppt_tsc) {
            assert_true(p.payload.tsc.tsc >= time);
            time = p.payload.tsc.tsc;
        } else if (p.type == ppt_tip_pgd) {
            left = time;
        } else if (p.type == ppt_tip_pge) {
            found |= left && left <= out && in <= time;
            left = 0;
        }
    }
    pt_pkt_free_decoder(decoder);
    return found;
}

/* Freezes until the kernel's last record of the thread is that it left its CPU: it says that it sleeps a
 * moment before it does. */
static void freeze_asleep(struct harness *x, const struct rec_ring **rings,
                          const struct rec_switch **switches, size_t *n)
{
    uint64_t until = now_ms() + PATIENCE_MS;
    struct st_error err = {0};
    size_t nrings;

    for (;;) {
        harness_freeze(x, rings, &nrings);
        harness_must(ops->switches(x->source, switches, n, &err), &err, "switches");
        if (!*n || (*switches)[*n - 1].out || now_ms() > until)
            return;
        harness_resume(x);
        sleep_ms(5);
    }
}

/* The switches told are those of the sleeps: not the steps', and not those of system calls that do not wait.
 */
static void test_real_switches(void **state)
{
    const struct rec_switch *switches;
    const struct rec_ring *rings;
    struct harness x;
    size_t n;
    pid_t pid;

    (void)state;
    second_sleep =
        mmap(NULL, sizeof(*second_sleep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(second_sleep != MAP_FAILED);
    harness_fork(&x, NULL, sleeps_twice);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    assert_true(UNTIL(*second_sleep && state_of(pid) == 'S'));
    freeze_asleep(&x, &rings, &switches, &n);
    if (n) { /* nothing where perf events are refused */
        uint64_t slept = 0, out = 0, in = 0;

        assert_true(n >= 3 && n < 100);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(switches[i].tid, pid);
            assert_int_equal(switches[i].pid, pid);
            assert_true(switches[i].time > rings[0].first_time);
            if (i) {
                assert_true(switches[i].time >= switches[i - 1].time);
                assert_int_equal(switches[i].out, !switches[i - 1].out);
            }
            if (i && !switches[i].out && switches[i].time - switches[i - 1].time > slept) {
                out = switches[i - 1].time;
                in = switches[i].time;
                slept = in - out;
            }
        }
        /* The packets and the kernel's records tell time by one clock. */
        assert_true(is_away(&rings[0], out, in));
        assert_true(switches[n - 1].out);
        assert_in_range(slept, 119000000, PATIENCE_MS * 1000000ull);
    }
    harness_resume(&x);
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
}

/* While frozen nothing moves; afterwards the trace goes on. */
static void test_freezes(void **state)
{
    const struct rec_ring *rings;
    uint64_t bytes, steps;
    struct harness x;
    size_t n;
    pid_t pid;

    (void)state;
    harness_log_begin();
    harness_fork(&x, NULL, works_on);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    assert_true(UNTIL(step_count(x.source) > 2000));
    harness_freeze(&x, &rings, &n);
    assert_int_equal(n, 1);
    bytes = rings[0].size[0];
    assert_int_equal(harness_compare(&rings[0]).differences, 0);
    sleep_ms(50);
    ops->rings(x.source, &rings, &n, NULL);
    assert_int_equal(rings[0].size[0], bytes);
    steps = step_count(x.source);
    harness_resume(&x);
    assert_true(UNTIL(step_count(x.source) > steps + 2000));
    harness_freeze(&x, &rings, &n);
    assert_true(rings[0].size[0] > bytes);
    assert_int_equal(harness_compare(&rings[0]).differences, 0);
    harness_resume(&x);
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
}

static void test_slots_are_used_again(void **state)
{
    struct step_shared *shared;
    struct step_slot *first, *second;

    (void)state;
    assert_int_equal(step_shared_create(4096, &shared, NULL), 0);
    assert_int_equal(shared->nslots, STEP_SLOTS);
    first = step_slot_take(shared, 1, 1, 100);
    second = step_slot_take(shared, 1, 2, 100);
    for (int i = 2; i < STEP_SLOTS; i++)
        assert_non_null(step_slot_take(shared, 1, i + 1, 100));
    assert_null(step_slot_take(shared, 1, 5000, 100));
    second->ring.head = 7;
    step_slot_end(second, 200);
    step_slot_end(first, 300);
    assert_ptr_equal(step_slot_take(shared, 1, 5000, 400), second);
    assert_int_equal(second->ring.head, 0);
    assert_ptr_equal(step_slot_take(shared, 1, 5001, 400), first);
    assert_null(step_slot_take(shared, 1, 5002, 400));
    step_shared_free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrapped_ring),
        cmocka_unit_test(test_real_switches),
        cmocka_unit_test(test_freezes),
        cmocka_unit_test(test_slots_are_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
