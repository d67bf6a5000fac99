/* The PMUs of a processor with cores of several kinds. */
#include "recorder/sources/sample/cores.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static bool read_line(const char *folder, const char *pmu, const char *name, char *line, int size)
{
    char path[PATH_MAX];
    bool there;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s/%s", folder, pmu, name);
    f = fopen(path, "re");
    if (!f)
        return false;
    there = fgets(line, size, f) != NULL;
    fclose(f);
    return there;
}

static int add(smp_cores *cores, uint32_t type, const char *cpus, struct st_error *err)
{
    struct smp_core_pmu pmu = {.type = type};
    int rc = rec_cpus_parse(cpus, &pmu.cpus, err);

    if (!rc && st_vec_push(cores, pmu))
        rc = st_nomem(err, "the kinds of cores");
    if (rc)
        st_vec_free(&pmu.cpus);
    return rc;
}

int smp_cores_read(const char *folder, smp_cores *cores, struct st_error *err)
{
    static const char *const names[] = {"cpu_core", "cpu_atom",
                                        "cpu_lowpower"}; /* arch/x86/events/intel/core.c */
    char type[32], cpus[4096];
    unsigned number;
    int rc = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !rc; i++)
        if (read_line(folder, names[i], "type", type, sizeof(type)) && sscanf(type, "%u", &number) == 1 &&
            read_line(folder, names[i], "cpus", cpus, sizeof(cpus)) && *cpus != '\n')
            rc = add(cores, number, cpus, err);
    return rc;
}

bool smp_cores_type(const smp_cores *cores, int cpu, uint32_t *type)
{
    for (size_t i = 0; i < cores->n; i++)
        for (size_t k = 0; k < cores->at[i].cpus.n; k++)
            if (cores->at[i].cpus.at[k] == cpu) {
                *type = cores->at[i].type;
                return true;
            }
    return false;
}

void smp_cores_close(smp_cores *cores)
{
    for (size_t i = 0; i < cores->n; i++)
        st_vec_free(&cores->at[i].cpus);
    st_vec_free(cores);
}
