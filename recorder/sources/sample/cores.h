/* The PMUs of a processor with cores of several kinds (cpu_core, cpu_atom...): an event of one of them counts
 * nothing on the others' CPUs, and one that names none is of the first
 * (https://docs.kernel.org/admin-guide/perf/index.html; perf-intel-hybrid(1)). */
#ifndef ST_RECORDER_SOURCES_SAMPLE_CORES_H
#define ST_RECORDER_SOURCES_SAMPLE_CORES_H

#include "base/error.h"
#include "base/vec.h"
#include "recorder/perf/cpus.h"

#include <stdbool.h>
#include <stdint.h>

#define SMP_CORES_FOLDER "/sys/devices"

struct smp_core_pmu {
    uint32_t type; /* as in perf_event_attr.type */

    rec_cpu_list cpus;
};

/* Empty where all cores are alike. */
typedef ST_VEC(struct smp_core_pmu) smp_cores;

/* Reads them from below `folder`. ST_EFAIL (a list of CPUs is none), ST_ENOMEM: close it all the same. */
int smp_cores_read(const char *folder, smp_cores *cores, struct st_error *err);

/* The PMU's type of a CPU. False: it is of none. */
bool smp_cores_type(const smp_cores *cores, int cpu, uint32_t *type);

void smp_cores_close(smp_cores *cores);

#endif
