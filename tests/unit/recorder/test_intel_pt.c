/* The intel-pt source, as far as it can be told without the hardware: the PMU's description, the config of an
 * event, and the order of a ring's bytes. */
#include "recorder/sources/intel_pt/missing.h"
#include "recorder/sources/intel_pt/pmu.h"
#include "recorder/sources/intel_pt/ring.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[PATH_MAX];

static void put(const char *name, const char *text)
{
    char path[2 * PATH_MAX];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static int make_pmu(void **state)
{
    static const char *const files[][2] = {
        {"type", "8"},
        {"max_nonturbo_ratio", "32"},
        {"format/pt", "config:0"},
        {"format/cyc", "config:1"},
        {"format/mtc", "config:9"},
        {"format/tsc", "config:10"},
        {"format/noretcomp", "config:11"},
        {"format/branch", "config:13"},
        {"format/mtc_period", "config:14-17"},
        {"format/cyc_thresh", "config:19-22"},
        {"format/psb_period", "config:24-27"},
        {"caps/mtc", "1"},
        {"caps/mtc_periods", "249"},
        {"caps/psb_cyc", "1"},
        {"caps/cycle_thresholds", "3fff"},
        {"caps/psb_periods", "3f"},
    };
    char path[2 * PATH_MAX];

    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/pmu.XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (const char *const *sub = (const char *const[]){"format", "caps", NULL}; *sub; sub++) {
        snprintf(path, sizeof(path), "%s/%s", folder, *sub);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        put(files[i][0], files[i][1]);
    return 0;
}

static int remove_pmu(void **state)
{
    char command[2 * PATH_MAX];

    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

static void reads_what_the_kernel_tells(void **state)
{
    struct pt_pmu pmu;
    struct st_error err = {0};

    (void)state;
    assert_int_equal(pt_pmu_read(folder, &pmu, &err), 0);
    assert_int_equal(pmu.type, 8);
    assert_int_equal(pmu.max_nonturbo_ratio, 32);
    assert_int_equal(pmu.mtc_period, 0xf << 14);
    assert_int_equal(pmu.mtc_periods, 0x249);
    assert_int_equal(pmu.psb_periods, 0x3f);
}

static void takes_the_finest_time_that_there_is(void **state)
{
    struct pt_pmu pmu;
    uint64_t config;

    (void)state;
    assert_int_equal(pt_pmu_read(folder, &pmu, NULL), 0);
    config = pt_pmu_config(&pmu, 4 << 20);
    assert_int_equal(config & 0x3, 0x3);                  /* pt, cyc */
    assert_int_equal(config >> 9 & 0x17, 0x13);           /* mtc, tsc, branch; not noretcomp */
    assert_int_equal((config & pmu.mtc_period) >> 14, 3); /* allowed: 0, 3, 6, 9 */
    assert_int_equal((config & pmu.cyc_thresh) >> 19, 0);
    assert_int_equal((config & pmu.psb_period) >> 24, 3);
}

static void small_rings_have_many_psbs(void **state)
{
    struct pt_pmu pmu;

    (void)state;
    assert_int_equal(pt_pmu_read(folder, &pmu, NULL), 0);
    assert_int_equal((pt_pmu_config(&pmu, 256 << 10) & pmu.psb_period) >> 24, 1);
    assert_int_equal((pt_pmu_config(&pmu, 64 << 10) & pmu.psb_period) >> 24, 0);
}

static void asks_for_nothing_that_the_processor_lacks(void **state)
{
    struct pt_pmu pmu;

    (void)state;
    put("caps/mtc", "0");
    put("caps/psb_cyc", "0");
    assert_int_equal(pt_pmu_read(folder, &pmu, NULL), 0);
    assert_int_equal(pt_pmu_config(&pmu, 4 << 20), 1 | 1 << 10 | 1 << 13);
}

static void takes_the_nearest_allowed_period(void **state)
{
    struct pt_pmu pmu;

    (void)state;
    put("caps/mtc_periods", "201"); /* 0 and 9 */
    assert_int_equal(pt_pmu_read(folder, &pmu, NULL), 0);
    assert_int_equal((pt_pmu_config(&pmu, 4 << 20) & pmu.mtc_period) >> 14, 0);
}

static void says_that_there_is_no_pmu(void **state)
{
    struct pt_pmu pmu = {.type = 77};
    struct st_error err = {0};

    (void)state;
    assert_int_equal(pt_pmu_read("/nowhere/intel_pt", &pmu, &err), ST_ECANNOT);
    assert_non_null(strstr(err.text, "no intel_pt PMU"));
    assert_int_equal(pmu.type, 77);
}

/* The cause without a PMU, from what /proc/cpuinfo tells. */
static void the_cause_of_no_pmu_is_named(void **state)
{
    static const struct {
        const char *cpuinfo, *why, *advice;
    } cases[] = {
        {"vendor_id\t: AuthenticAMD\nflags\t\t: fpu hypervisor lm\n",
         "no Intel one (AuthenticAMD, in a virtual", "an Intel processor"},
        {"vendor_id\t: AuthenticAMD\nflags\t\t: fpu lm\n", "no Intel one (AuthenticAMD)",
         "an Intel processor"},
        {"vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor lm\n", "guest without Intel PT",
         "on the host"},
        {"vendor_id\t: GenuineIntel\nflags\t\t: fpu intel_pt hypervisor\n",
         "has it, in a virtual machine, but", "pt_mode"},
        {"vendor_id\t: GenuineIntel\nflags\t\t: fpu not_intel_pt lm\n\nvendor_id\t: X\nflags\t\t: "
         "hypervisor\n",
         "does not have it", "Broadwell"},
        {"", "no Intel one (unknown)", "another source"},
    };
    char path[2 * PATH_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pt_missing m;
        struct pt_cpu cpu;

        put("cpuinfo", cases[i].cpuinfo);
        snprintf(path, sizeof(path), "%s/cpuinfo", folder);
        cpu = pt_cpu_read(path);
        m = pt_why_missing(&cpu);
        if (!strstr(m.why, cases[i].why) || !strstr(m.advice, cases[i].advice))
            fail_msg("case %zu: %s; %s", i, m.why, m.advice);
    }
    assert_string_equal(pt_cpu_read("/nowhere/cpuinfo").vendor, "unknown");
    unlink(path);
}

static void a_broken_description_is_an_error(void **state)
{
    struct pt_pmu pmu;
    struct st_error err = {0};

    (void)state;
    put("format/tsc", "config:70");
    assert_int_equal(pt_pmu_read(folder, &pmu, &err), ST_ECANNOT);
}

/* ------------------------------------------------------------------ */

enum { BYTES = 16 };

static void check_parts(const char *bytes, uint64_t head, const char *first, const char *second,
                        bool overwritten)
{
    struct perf_event_mmap_page page = {.aux_head = head};
    struct pt_ring ring = {.page = &page, .aux = (const uint8_t *)bytes, .bytes = BYTES};
    struct rec_ring to = {0};

    pt_ring_parts(&ring, &to);
    assert_int_equal(to.size[0], strlen(first));
    assert_memory_equal(to.part[0], first, strlen(first));
    assert_int_equal(to.size[1], head & (BYTES - 1));
    assert_memory_equal(to.part[1], second, to.size[1]);
    assert_int_equal(to.offset > 0, overwritten);
}

static void rings_are_told_oldest_first(void **state)
{
    (void)state;
    check_parts("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 0, "", "", false);
    check_parts("abcde\0\0\0\0\0\0\0\0\0\0\0", 5, "", "abcde", false);
    check_parts("mnopqfghijklABCD", 5, "fghijklABCD", "mnopq", true);
    check_parts("mnopqfghijklABCD", 0, "mnopqfghijklABCD", "", true);
    check_parts("mnopqfghijklABCD", 16, "mnopqfghijklABCD", "", true);
    check_parts("ab\0\0\0\0\0\0\0\0\0\0\0\0\0z", 2, "z", "ab", true);
    check_parts("ab\0\0\0\0\0\0\0\0\0\0\0xyz", 3, "xyz", "ab\0", true);
    check_parts("mnopq\0ghijklABCD", 5, "ghijklABCD", "mnopq", true); /* a PAD at the seam */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_what_the_kernel_tells, make_pmu, remove_pmu),
        cmocka_unit_test_setup_teardown(takes_the_finest_time_that_there_is, make_pmu, remove_pmu),
        cmocka_unit_test_setup_teardown(small_rings_have_many_psbs, make_pmu, remove_pmu),
        cmocka_unit_test_setup_teardown(asks_for_nothing_that_the_processor_lacks, make_pmu, remove_pmu),
        cmocka_unit_test_setup_teardown(takes_the_nearest_allowed_period, make_pmu, remove_pmu),
        cmocka_unit_test(says_that_there_is_no_pmu),
        cmocka_unit_test_setup_teardown(the_cause_of_no_pmu_is_named, make_pmu, remove_pmu),
        cmocka_unit_test_setup_teardown(a_broken_description_is_an_error, make_pmu, remove_pmu),
        cmocka_unit_test(rings_are_told_oldest_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
