/* Which source can record here, and what the processor's Intel PT offers. */
#include "recorder/code/kcore.h"
#include "recorder/doctor/doctor.h"
#include "recorder/perf/privileges.h"
#include "recorder/sideband/sideband.h"
#include "recorder/sources/intel_pt/missing.h"
#include "recorder/sources/intel_pt/pause.h"
#include "recorder/sources/source.h"

#include <dirent.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char pmu[] = "/sys/bus/event_source/devices/intel_pt";

static void add_missing(struct doctor *d)
{
    struct pt_cpu cpu = pt_cpu_read("/proc/cpuinfo");
    struct pt_missing m = pt_why_missing(&cpu);

    doctor_add(d, "intel_pt", "Intel PT", DOCTOR_NO, m.advice, "%s", m.why);
}

/* Appends " NAME=VALUE" for each file of the folder. */
static void list_values(const char *folder, char *text, size_t size)
{
    char path[sizeof(pmu) + 300], value[64];
    struct dirent *e;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s", pmu, folder);
    dir = opendir(path);
    while (dir && (e = readdir(dir))) {
        size_t used = strlen(text);
        FILE *f;

        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s/%s", pmu, folder, e->d_name);
        f = fopen(path, "re");
        if (f && fgets(value, sizeof(value), f))
            snprintf(text + used, size - used, " %s=%.*s", e->d_name, (int)strcspn(value, "\n"), value);
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
}

/* Where Intel PT lacks: what is recorded without it, and what it would add. */
static void add_without(struct doctor *d)
{
    doctor_add(
        d, "without_intel_pt", "without Intel PT", DOCTOR_INFO, NULL,
        "arm takes the source sample: off-CPU times, wake-ups and the stack a thread waits in are exact; "
        "of the calls it sees those that last longer than a sampling period. Intel PT would add every "
        "call and return, however short, each with its time, and the order of all of them");
}

static void add_freeze(struct doctor *d)
{
    struct st_error err = {0};

    if (!pt_pause_probe(&err))
        doctor_add(d, "intel_pt.aux_pause", "freeze in the kernel", DOCTOR_YES, NULL,
                   "a trigger stops the trace of the thread that stalled at once (aux_pause)");
    else
        doctor_add(d, "intel_pt.aux_pause", "freeze in the kernel", DOCTOR_NO,
                   "nothing to do: the recorder stops the trace from user space, a moment later", "%s",
                   err.text);
}

static void add_kernel_code(struct doctor *d)
{
    struct st_error err = {0};

    if (!rec_kcore_probe(&err))
        doctor_add(d, "intel_pt.kcore", "the kernel's code", DOCTOR_YES, NULL,
                   "/proc/kcore tells it: kernel functions can be recorded");
    else
        doctor_add(d, "intel_pt.kcore", "the kernel's code", DOCTOR_NO, NULL, "%s", err.text);
}

static void add_pmu(struct doctor *d)
{
    char caps[2048] = "";

    if (access(pmu, F_OK)) {
        add_missing(d);
        add_without(d);
        return;
    }
    doctor_add(d, "intel_pt", "Intel PT", DOCTOR_YES, NULL, "the kernel has an intel_pt PMU");
    list_values("caps", caps, sizeof(caps));
    doctor_add(d, "intel_pt.caps", "Intel PT's features", DOCTOR_INFO, NULL, "%s", *caps ? caps + 1 : "none");
    caps[0] = '\0';
    list_values("format", caps, sizeof(caps));
    doctor_add(d, "intel_pt.format", "Intel PT's settings", DOCTOR_INFO, NULL, "%s",
               *caps ? caps + 1 : "none");
    add_freeze(d);
    add_kernel_code(d);
}

/* Opens what arm opens of this process itself, and closes it again. */
static int open_as_arm(const struct rec_source_ops *ops, const struct rec_source_config *config,
                       struct st_error *err)
{
    const struct rec_sideband_config wanted = {.target = config->target, .switches = true};
    const struct rec_store_bounds bounds = {0};
    struct rec_store *store = NULL;
    struct rec_sideband *sideband = NULL;
    struct rec_source *source = NULL;
    struct rec_clock clock = {.fd = -1};
    int rc = rec_store_open(&bounds, &store, err);

    if (!rc)
        rc = rec_clock_open(&clock, err);
    if (!rc)
        rc = rec_sideband_open(&wanted, &clock, store, &sideband, err);
    if (!rc)
        rc = ops->open(config, &source, err);
    if (!rc)
        ops->close(source);
    rec_sideband_close(sideband, -1);
    rec_clock_close(&clock);
    rec_store_close(store);
    return rc;
}

/* Where rings have a limit, arm may be refused by that, and then says so in these words. The rings of `step`
 * are memory like any other. */
static int try_source(const struct rec_source_ops *ops, const struct rec_source_config *config,
                      struct st_error *err)
{
    int rc = ops->probe(config, err);

    if (rc || !ops->ring_total || rec_has_capability(CAP_IPC_LOCK))
        return rc;
    return open_as_arm(ops, config, err);
}

void doctor_sources(struct doctor *d)
{
    pid_t self = getpid();
    struct st_target target = {.kind = ST_TARGET_PIDS, .pids = &self, .npids = 1};
    const struct rec_source_config config = {.target = &target};

    for (size_t i = 0; rec_sources[i]; i++) {
        const struct rec_source_ops *ops = rec_sources[i];
        struct st_error err = {0};
        char key[64];
        int rc = try_source(ops, &config, &err);

        /* Why there is no Intel PT is told once, by add_pmu(). */
        if (!strcmp(ops->name, "intel-pt") && access(pmu, F_OK))
            err.text[strcspn(err.text, "\n")] = '\0';
        snprintf(key, sizeof(key), "source.%s", ops->name);
        doctor_add(d, key, ops->name, rc ? DOCTOR_NO : DOCTOR_YES, NULL, "%s%s%s", ops->summary,
                   rc ? ": " : "", rc ? err.text : "");
    }
    add_pmu(d);
}
