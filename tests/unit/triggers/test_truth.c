/* Every kind of trigger beside an independent observer of the same run: what perf's tracepoints and probes
 * show over the threshold is exactly what fires, with the right thread and the right length; the stalls that
 * the workload makes are all among it. Prints a line a kind. TRUTH_COUNT is how many stalls of each workload
 * are over the threshold (13), TRUTH_SCALE makes the stalls longer, TRUTH_ALL=1: a kernel that lacks
 * something fails, TRUTH_HOOK: how functions of the kernel are to be seen, TRUTH_NOISE: how many lengths of a
 * row may differ by more. An argument chooses tests: "busy*". */
#include "spans.h"
#include "triggers/functions.h"
#include "truth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SPANS 65536

struct row {
    const char *trigger; /* %s: this program */

    uint64_t threshold_ns;

    workload_fn *work;

    truth_observe_fn *observe;

    truth_seen_fn *seen;

    bool only; /* nothing but the workload's own stalls */

    bool unnoted; /* the machine causes them, the workload does not note them */

    bool kernel_function;
};

static const struct row rows[] = {
    {"offcpu>20ms", 20 * MS, truth_receive, truth_observe_switches, truth_offcpu, false, false, false},
    {"runq>20ms", 20 * MS, truth_lose_cpu, truth_observe_wakes, truth_runq, false, false, false},
    {"syscall>20ms", 20 * MS, truth_receive, truth_observe_calls, truth_syscalls, true, false, false},
    {"syscall:recvfrom>20ms", 20 * MS, truth_receive, truth_observe_calls, truth_receives, true, false,
     false},
    {"busy>20ms", 20 * MS, truth_loop, truth_observe_calls, truth_busy, true, false, false},
    {"quiet:raw_syscalls:sys_enter>20ms,if=id==121", 20 * MS, truth_beat, truth_observe_beats, truth_quiet,
     true, false, false},
    {"func:truth_slow>20ms", 20 * MS, truth_call, truth_observe_function, truth_function, true, false, false},
    {"func:kernel!__x64_sys_recvfrom>20ms", 20 * MS, truth_receive, truth_observe_calls, truth_receives, true,
     false, true},
    {"quiet:kernel!__x64_sys_getpgid>20ms", 20 * MS, truth_beat, truth_observe_beats, truth_quiet, true,
     false, true},
    /* what state=, idle= and if= take in or leave out */
    {"offcpu>20ms,idle=yes", 20 * MS, truth_receive, truth_observe_switches, truth_offcpu_idle, false, false,
     false},
    {"offcpu>20ms,state=blocked", 20 * MS, truth_vfork, truth_observe_switches, truth_blocked, true, false,
     false},
    {"offcpu>20ms,state=preempted", 20 * MS, truth_lose_cpu, truth_observe_switches, truth_preempted, false,
     false, false},
    {"offcpu>20ms,state=sleeping+blocked,idle=recvfrom", 20 * MS, truth_receive, truth_observe_switches,
     truth_nothing, true, false, false},
    {"runq>20ms,state=preempted", 20 * MS, truth_lose_cpu, truth_observe_wakes, truth_ready_preempted, false,
     false, false},
    {"runq>20ms,state=sleeping", 20 * MS, truth_wake, truth_observe_wakes, truth_woken, false, false, false},
    {"runq>20ms,state=blocked", 20 * MS, truth_wake, truth_observe_wakes, truth_nothing, true, false, false},
    {"syscall>20ms,idle=yes", 20 * MS, truth_receive, truth_observe_calls, truth_idle_calls, false, false,
     false},
    {"syscall>20ms,idle=recvfrom", 20 * MS, truth_receive, truth_observe_calls, truth_nothing, true, false,
     false},
    {"syscall:recvfrom>20ms,if=ret<0&&arg2==1", 20 * MS, truth_receive, truth_observe_calls, truth_receives,
     true, false, false},
    {"syscall:recvfrom>20ms,if=ret>=0", 20 * MS, truth_receive, truth_observe_calls, truth_nothing, true,
     false, false},
    {"func:truth_slow>20ms,if=ret==1", 20 * MS, truth_call, truth_observe_function, truth_nothing, true,
     false, false},
    {"quiet:truth_called>20ms,if=arg0==1", 20 * MS, truth_beat, truth_observe_beats, truth_quiet, true, false,
     false},
    {"busy>20ms,idle=recvfrom", 20 * MS, truth_loop, truth_observe_calls, truth_nothing, true, false, false},
    {"call:truth_called,if=arg0>=25", 0, truth_hit, truth_observe_hits, truth_hits, true, false, false},
    {"call:kernel!__x64_sys_getpriority", 0, truth_hit, truth_observe_calls, truth_priorities, true, false,
     true},
    {"usdt:%s:st_test:beat,if=arg0>=25", 0, truth_hit, truth_observe_hits, truth_hits, true, false, false},
    {"tracepoint:syscalls:sys_enter_getpriority,if=who>=25", 0, truth_hit, truth_observe_tracepoint,
     truth_hits, true, false, false},
    {"socket>20ms,side=unread", 20 * MS, truth_read_late, truth_observe_calls, truth_unread, true, false,
     false},
    {"socket>20ms,side=unsent", 20 * MS, truth_write_twice, truth_observe_packets, truth_unsent, true, false,
     false},
    {"softirq:NET_RX>500us", MS / 2, truth_broadcast, truth_observe_softirqs, truth_handlers, false, false,
     false},
    {"irq>1us", 1000, truth_use_disk, truth_observe_irqs, truth_handlers, false, true, false},
    {"irq>100us", MS / 10, truth_use_disk, truth_observe_irqs, truth_handlers, false, true, false},
};

struct run {
    const struct row *row;

    uint64_t threshold_ns;

    struct workload work;

    struct watch w;

    struct observer o;

    struct truth_span *spans;

    size_t n, over, fired;

    const char *hook;

    uint64_t worst_ns; /* by which a length differs */

    size_t noise; /* lengths that differ by more */

    size_t taken_away; /* events that one of the two measured under the threshold */
};

static int number(const char *name, int otherwise)
{
    return getenv(name) ? atoi(getenv(name)) : otherwise;
}

static uint64_t tolerance(uint64_t threshold)
{
    uint64_t least = threshold / 5 < 2000 ? 2000 : threshold / 5;

    return threshold / 20 + (least < 100000 ? least : 100000);
}

static uint64_t took(const struct truth_span *s)
{
    return s->end_ns - s->start_ns;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* In an emulated computer whose host has other work a processor may stand still between the two programs that
 * look at one event. */
static size_t noise_allowed(const struct run *r)
{
    size_t most = (size_t)number("TRUTH_NOISE", 0);

    return most && r->row->unnoted ? r->n / 5 : most; /* of handlers there are many */
}

/* ---- the run ---- */

static bool is_open(const struct watch *w)
{
    for (size_t i = 0; i < w->records.n; i++)
        if (w->records.at[i].r.flags & ST_STALL_ONGOING &&
            spans_whole(w, &w->records.at[i].r) == &w->records.at[i].r)
            return true;
    return false;
}

static void collect(struct run *r)
{
    uint32_t all = (uint32_t)(r->row->work == truth_broadcast ? truth_count : truth_count + truth_count / 2);
    uint64_t give_up = workload_now() + 120000 * MS;

    while (workload_now() < give_up &&
           (r->row->unnoted ? !r->work.shared->note[0] : r->work.shared->stalls < all))
        watch_collect(&r->w, SIZE_MAX, 20);
    watch_collect(&r->w, SIZE_MAX, SETTLE);
    while (workload_now() < give_up && r->row->work != truth_beat && is_open(&r->w))
        watch_collect(&r->w, SIZE_MAX, 20);
    if (!r->row->unnoted)
        assert_int_equal(r->work.shared->stalls, all);
}

/* The trigger's text, with this program's path and the threshold of TRUTH_SCALE. */
static void put_trigger(struct run *r, char *text, size_t size)
{
    char path[256];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    const char *threshold = strstr(r->row->trigger, ">20ms");

    assert_true(n > 0);
    path[n] = '\0';
    r->threshold_ns = r->row->threshold_ns;
    if (truth_scale > 1 && r->row->threshold_ns == MS / 10) { /* its handlers take that long each time */
        r->threshold_ns = 2 * MS;
        snprintf(text, size, "irq>2ms");
        return;
    }
    if (!threshold || r->row->work == truth_write_twice) { /* the kernel says how long an ACK is delayed */
        snprintf(text, size, r->row->trigger, path);
        return;
    }
    r->threshold_ns *= (uint64_t)truth_scale;
    snprintf(text, size, "%.*s>%dms%s", (int)(threshold - r->row->trigger), r->row->trigger, 20 * truth_scale,
             threshold + 5);
}

static void run(struct run *r)
{
    char trigger[512];

    put_trigger(r, trigger, sizeof(trigger));
    prctl(PR_SET_NAME, TRUTH_NAME); /* the workload has it from its beginning */
    workload_fork(&r->work, r->row->work);
    prctl(PR_SET_NAME, "observer");
    r->row->observe(&r->o); /* before the trigger, so that it does not measure what that costs */
    watch_start(&r->w, trigger, &r->work.pid, 1, NULL, NULL);
    r->hook = trg_hook(r->w.set, 0);
    workload_go(&r->work);
    collect(r);
    observer_end(&r->o);
    spans_sort(&r->w);
    r->spans = calloc(SPANS, sizeof(*r->spans));
    assert_non_null(r->spans);
    r->n = r->row->seen(&r->o, &r->work, r->spans, SPANS);
    if (!r->n && !r->row->unnoted && r->row->seen != truth_nothing)
        fail_msg("of %zu events none is a stall", r->o.seen.n);
    assert_true(r->n < SPANS);
}

/* ---- the comparison ---- */

/* A heartbeat is silent before the workload and after it too. */
static bool counts(const struct run *r, const struct st_stall_record *record)
{
    return record->flags & ST_STALL_FIRED && record->start_ktime >= r->work.go_ns &&
           (r->row->work != truth_beat || record->start_ktime + MS < r->spans[r->n - 1].end_ns);
}

/* The first record that may be of it; NULL: none. They are in the order of their starts, as the spans of a
 * thread are. */
static const struct st_stall_record *told(const struct run *r, const struct truth_span *s, const bool *used,
                                          size_t *at)
{
    uint64_t most = (noise_allowed(r) ? 20 : 2) * MS;

    for (*at = 0; *at < r->w.records.n; ++*at) {
        const struct st_stall_record *one = &r->w.records.at[*at].r;

        if (!used[*at] && counts(r, one) && one->tid == (uint32_t)s->tid &&
            apart(one->start_ktime, s->start_ns) <= most)
            return one;
    }
    return NULL;
}

/* What the observer itself takes of an interrupt's handler in an emulated computer. */
static uint64_t looking_ns(const struct run *r)
{
    return r->row->unnoted && noise_allowed(r) ? 250000 : 0;
}

static void compare_length(struct run *r, const struct truth_span *s, const struct st_stall_record *record)
{
    uint64_t measured = spans_whole(&r->w, record)->measured_ns, differ = apart(measured, took(s));
    uint64_t most = took(s) / 20 + 100000 + s->within_ns + looking_ns(r);

    if (!r->threshold_ns || s->unsure)
        return;
    if (differ > most && r->noise < noise_allowed(r)) {
        r->noise++;
        return;
    }
    if (differ > most)
        fail_msg("a stall of %lu us was told as one of %lu us", took(s) / 1000, measured / 1000);
    r->worst_ns = differ > r->worst_ns ? differ : r->worst_ns;
}

/* For the reader of a failure. Times in us since the workload was let go. */
static void show(const struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (took(&r->spans[i]) + MS > r->threshold_ns)
            print_message("observed: thread %d at %ld, %lu%s\n", r->spans[i].tid,
                          (long)(r->spans[i].start_ns - r->work.go_ns) / 1000, took(&r->spans[i]) / 1000,
                          r->spans[i].unsure ? " unsure" : "");
    for (size_t i = 0; i < r->w.records.n; i++) {
        const struct st_stall_record *record = &r->w.records.at[i].r;

        print_message("told: thread %u at %ld, %lu, flags %#x\n", record->tid,
                      (long)(record->start_ktime - r->work.go_ns) / 1000, record->measured_ns / 1000,
                      record->flags);
    }
    for (uint32_t i = 0; i < r->work.shared->stalls; i++) {
        const struct workload_stall *s = &r->work.shared->stall[i];

        print_message("made: thread %d at %ld, %lu\n", s->tid, (long)(s->start_ns - r->work.go_ns) / 1000,
                      (s->end_ns - s->start_ns) / 1000);
    }
}

#define FAIL(r, ...)                                                                                         \
    do {                                                                                                     \
        show(r);                                                                                             \
        fail_msg(__VA_ARGS__);                                                                               \
    } while (0)

/* A hypervisor may take the processor between the two programs that look at one event: one of them then
 * measures a little more. Of a handler of some microseconds that is most of it; of few handlers, and only of
 * short ones. */
static bool taken_away(struct run *r, uint64_t ns)
{
    if (!r->row->unnoted || ns >= r->threshold_ns + 100000 || r->taken_away > r->n / 20)
        return false;
    r->taken_away++;
    return true;
}

/* Each span that is over the threshold fired once, no other did. */
static void compare(struct run *r)
{
    bool *used = calloc(r->w.records.n + 1, sizeof(*used));
    uint64_t threshold = r->threshold_ns, band = threshold ? tolerance(threshold) + looking_ns(r) : 0;
    size_t at = 0;

    assert_non_null(used);
    for (size_t i = 0; i < r->n; i++) {
        const struct truth_span *s = &r->spans[i];
        const struct st_stall_record *record;

        if (s->start_ns < r->work.go_ns || took(s) + band < threshold)
            continue;
        record = told(r, s, used, &at);
        if (!record && !s->unsure && took(s) >= threshold + band && !taken_away(r, took(s)))
            FAIL(r, "thread %d: a stall of %lu us at %lu us did not fire", s->tid, took(s) / 1000,
                 (s->start_ns - r->work.go_ns) / 1000);
        r->over += record || took(s) >= threshold + band;
        if (!record)
            continue;
        used[at] = true;
        compare_length(r, s, record);
    }
    for (size_t i = 0; i < r->w.records.n; i++) {
        const struct st_stall_record *record = &r->w.records.at[i].r;

        r->fired += counts(r, record);
        if (counts(r, record) && !used[i] && !taken_away(r, record->measured_ns))
            FAIL(r, "thread %u fired with %lu us at %ld us, which the observer has not seen", record->tid,
                 record->measured_ns / 1000, (long)(record->start_ktime - r->work.go_ns) / 1000);
    }
    free(used);
}

/* The stalls that the workload made are among what fired; for most kinds there are no others. Returns how
 * many of them are over the threshold. */
static size_t find_noted(const struct run *r)
{
    uint64_t threshold = r->threshold_ns, band = threshold ? tolerance(threshold) : 0;
    size_t over = 0, most = 0;

    for (uint32_t i = 0; i < r->work.shared->stalls; i++) {
        const struct workload_stall *s = &r->work.shared->stall[i];
        uint64_t noted = s->end_ns - s->start_ns;
        size_t found = 0;

        for (size_t j = 0; j < r->w.records.n; j++) {
            const struct st_stall_record *record = &r->w.records.at[j].r;

            found += counts(r, record) && record->tid == (uint32_t)s->tid &&
                     record->start_ktime < s->end_ns &&
                     record->start_ktime + spans_whole(&r->w, record)->measured_ns +
                             (noise_allowed(r) ? 20 : 2) * MS >
                         s->start_ns;
        }
        over += threshold ? noted >= threshold + 2 * band : found;
        most += threshold ? noted + band >= threshold : found;
        if (!found && threshold && r->row->seen != truth_nothing && noted >= threshold + 2 * band)
            FAIL(r, "a stall of the workload of %lu us did not fire", noted / 1000);
    }
    if (r->row->only && r->fired > most + noise_allowed(r))
        FAIL(r, "%zu fired, and the workload made %zu", r->fired, most);
    return over;
}

static bool can_see(const struct row *row)
{
    const char *name = strchr(row->trigger, '!');
    enum trg_kernel_hook hook;
    struct st_error err = {0};
    char function[64];

    if (!row->kernel_function)
        return true;
    snprintf(function, sizeof(function), "%.*s", (int)strcspn(name + 1, ">,"), name + 1);
    if (!trg_find_kernel_hook(function, &hook, &err))
        return true;
    print_message("skipped: truth: %s: %s\n", row->trigger, err.text);
    assert_null(getenv("TRUTH_ALL"));
    return false;
}

static void test_row(void **state)
{
    struct run r = {.row = *state};
    char noise[32] = "";
    size_t noted;

    NEEDS_BPF();
    if (!observer_possible())
        skip();
    if (!can_see(r.row))
        skip();
    run(&r);
    compare(&r);
    noted = find_noted(&r);
    if (r.noise)
        snprintf(noise, sizeof(noise), ", but for %zu", r.noise);
    print_message(
        "truth: %-52s %s%s%s%3zu made, %3zu observed, %3zu fired; lengths differ by %lu us at most%s\n",
        r.row->trigger, r.hook ? "by " : "", r.hook ? r.hook : "", r.hook ? ": " : "", noted, r.over, r.fired,
        r.worst_ns / 1000, noise);
    if (!r.row->unnoted)
        assert_true(noted >= (size_t)truth_count);
    if (r.row->kernel_function && getenv("TRUTH_HOOK"))
        assert_string_equal(r.hook, getenv("TRUTH_HOOK"));
    watch_stop(&r.w);
    observer_free(&r.o);
    workload_wait(&r.work);
    free(r.spans);
    if (!r.over && r.row->unnoted) { /* nothing to compare, unless something fired that was not: see above */
        print_message("skipped: truth: %s: this machine has no handlers that take so long\n", r.row->trigger);
        skip();
    }
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[sizeof(rows) / sizeof(rows[0])];

    if (argc > 1)
        cmocka_set_test_filter(argv[1]); /* "busy*" */
    truth_count = number("TRUTH_COUNT", truth_count);
    truth_scale = number("TRUTH_SCALE", truth_scale);
    truth_sockets = number("TRUTH_SOCKETS", truth_sockets);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        tests[i] = (struct CMUnitTest){rows[i].trigger, test_row, NULL, NULL, (void *)&rows[i]};
    return _cmocka_run_group_tests("truth", tests, sizeof(rows) / sizeof(rows[0]), NULL, NULL);
}
