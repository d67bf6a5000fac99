/* On a processor with cores of several kinds each CPU has the event of its own kind, and no CPU is left out.
 */
#include "recorder/perf/event.h"
#include "recorder/sources/sample/state.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { CORE = 4, ATOM = 10 };

static char folder[] = "/tmp/stalltrap-cores.XXXXXX";

static struct perf_event_attr asked[8]; /* for cycles of a CPU */

static bool has_atom_cycles;

/* A kernel with two PMUs. */
int __wrap_rec_perf_event(const struct perf_event_attr *attr, pid_t pid, int cpu);
int __wrap_rec_perf_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
    (void)pid;
    (void)cpu;
    errno = ENOENT;
    if (attr->type == PERF_TYPE_HARDWARE && attr->config >> 32 == ATOM && !has_atom_cycles)
        return -1;
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_rec_perf_event_in_group(const struct perf_event_attr *attr, pid_t pid, int cpu, int leader);
int __wrap_rec_perf_event_in_group(const struct perf_event_attr *attr, pid_t pid, int cpu, int leader)
{
    (void)pid;
    if (leader < 0 && cpu >= 0)
        asked[cpu] = *attr;
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_rec_perf_id(int fd, uint64_t *id, struct st_error *err);
int __wrap_rec_perf_id(int fd, uint64_t *id, struct st_error *err)
{
    (void)fd;
    (void)err;
    *id = 7;
    return 0;
}

static void put(const char *pmu, const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, pmu);
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/%s/%s", folder, pmu, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/stalltrap-cores.XXXXXX");
    has_atom_cycles = true;
    return !mkdtemp(folder);
}

static int end(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void hybrid(void)
{
    put("cpu_core", "type", "4\n");
    put("cpu_core", "cpus", "0-3\n");
    put("cpu_atom", "type", "10\n");
    put("cpu_atom", "cpus", "4-5,7\n");
    put("cpu_lowpower", "type", "11\n");
    put("cpu_lowpower", "cpus", "\n"); /* all of them are offline */
}

static struct rec_source source(bool per_cpu, enum rec_callgraph callgraph)
{
    struct rec_source s = {.per_cpu = per_cpu, .callgraph = callgraph};

    assert_int_equal(smp_cores_read(folder, &s.cores, NULL), 0);
    return s;
}

static int choose(struct rec_source *s, struct st_error *err)
{
    const struct st_target target = {.kind = ST_TARGET_ALL};
    const struct rec_source_config config = {.target = &target};

    return smp_event_attr(s, &config, err);
}

static void each_cpu_is_of_one_kind(void **state)
{
    static const int kinds[] = {CORE, CORE, CORE, CORE, ATOM, ATOM, 0, ATOM};
    struct rec_source s;

    (void)state;
    hybrid();
    s = source(true, REC_CALLGRAPH_FP);
    assert_int_equal(s.cores.n, 2);
    for (int cpu = 0; cpu < 8; cpu++) {
        uint32_t type = 0;

        assert_int_equal(smp_cores_type(&s.cores, cpu, &type), kinds[cpu] != 0);
        assert_int_equal(type, kinds[cpu]);
    }
    smp_cores_close(&s.cores);
}

static void where_all_cores_are_alike_there_is_no_kind(void **state)
{
    struct rec_source s;

    (void)state;
    put("cpu", "type", "4\n");
    s = source(true, REC_CALLGRAPH_FP);
    assert_int_equal(s.cores.n, 0);
    assert_int_equal(choose(&s, NULL), 0);
    assert_int_equal(s.kinds[SMP_SAMPLES].attr.type, PERF_TYPE_HARDWARE);
    smp_cores_close(&s.cores);
}

static void a_list_that_is_none(void **state)
{
    smp_cores cores = {0};
    struct st_error err = {0};

    (void)state;
    put("cpu_core", "type", "4\n");
    put("cpu_core", "cpus", "x\n");
    assert_int_equal(smp_cores_read(folder, &cores, &err), ST_EFAIL);
    smp_cores_close(&cores);
}

static void each_cpu_has_the_event_of_its_kind(void **state)
{
    struct rec_source s;
    struct st_error err = {0};

    (void)state;
    hybrid();
    s = source(true, REC_CALLGRAPH_FP);
    assert_int_equal(choose(&s, NULL), 0);
    for (int cpu = 0; cpu < 8; cpu++) {
        struct smp_event e = {.pid = -1, .tid = -1, .cpu = cpu};

        if (cpu == 6) { /* of no kind: never a silent hole */
            assert_int_equal(smp_event_open(&s, &e, &err), ST_EFAIL);
            assert_non_null(strstr(err.text, "no PMU in /sys/devices/cpu_* counts on CPU 6"));
            continue;
        }
        assert_int_equal(smp_event_open(&s, &e, NULL), 0);
        assert_int_equal(asked[cpu].type, PERF_TYPE_HARDWARE);
        assert_int_equal(asked[cpu].config,
                         (uint64_t)(cpu < 4 ? CORE : ATOM) << 32 | PERF_COUNT_HW_CPU_CYCLES);
        smp_event_close(&e);
    }
    smp_cores_close(&s.cores);
}

/* A thread goes from one kind to the other, its event of cycles does not. */
static void a_thread_has_the_clock(void **state)
{
    struct rec_source s;

    (void)state;
    hybrid();
    s = source(false, REC_CALLGRAPH_FP);
    assert_int_equal(choose(&s, NULL), 0);
    assert_int_equal(s.kinds[SMP_SAMPLES].attr.type, PERF_TYPE_SOFTWARE);
    assert_int_equal(s.kinds[SMP_SAMPLES].attr.config, PERF_COUNT_SW_CPU_CLOCK);
    smp_cores_close(&s.cores);
}

static void where_one_kind_cannot_all_have_the_clock(void **state)
{
    struct rec_source s;

    (void)state;
    hybrid();
    has_atom_cycles = false;
    s = source(true, REC_CALLGRAPH_FP);
    assert_int_equal(choose(&s, NULL), 0);
    assert_int_equal(s.kinds[SMP_SAMPLES].attr.type, PERF_TYPE_SOFTWARE);
    smp_cores_close(&s.cores);
}

static void the_stack_of_branches_needs_rings_of_cpus(void **state)
{
    struct rec_source s;
    struct st_error err = {0};

    (void)state;
    hybrid();
    s = source(false, REC_CALLGRAPH_LBR);
    assert_int_equal(choose(&s, &err), ST_ECANNOT);
    assert_non_null(strstr(err.text, "--rings cpu"));
    smp_cores_close(&s.cores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_cpu_is_of_one_kind, begin, end),
        cmocka_unit_test_setup_teardown(where_all_cores_are_alike_there_is_no_kind, begin, end),
        cmocka_unit_test_setup_teardown(a_list_that_is_none, begin, end),
        cmocka_unit_test_setup_teardown(each_cpu_has_the_event_of_its_kind, begin, end),
        cmocka_unit_test_setup_teardown(a_thread_has_the_clock, begin, end),
        cmocka_unit_test_setup_teardown(where_one_kind_cannot_all_have_the_clock, begin, end),
        cmocka_unit_test_setup_teardown(the_stack_of_branches_needs_rings_of_cpus, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
