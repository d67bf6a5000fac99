/* What a snapshot says of the machine it was taken on. */
#include "perfdata/writer_state.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define PMUS "/sys/bus/event_source/devices"

/* The value of "key : value" in a line of /proc/cpuinfo, or NULL. */
static const char *value_of(char *line, const char *key)
{
    char *colon = strchr(line, ':');
    size_t n = strlen(key);

    if (!colon || strncmp(line, key, n) || (line[n] != '\t' && line[n] != ' '))
        return NULL;
    if (strspn(line + n, " \t") != (size_t)(colon - line) - n)
        return NULL;
    colon[strcspn(colon, "\n")] = '\0';
    return colon + 1 + strspn(colon + 1, " ");
}

struct cpu {
    char vendor[64], family[16], model[16], stepping[16], name[128];
};

static void read_cpu(FILE *f, struct cpu *cpu)
{
    const struct {
        const char *key;
        char *value;
        size_t size;
    } fields[] = {
        {"vendor_id", cpu->vendor, sizeof(cpu->vendor)}, {"cpu family", cpu->family, sizeof(cpu->family)},
        {"model", cpu->model, sizeof(cpu->model)},       {"stepping", cpu->stepping, sizeof(cpu->stepping)},
        {"model name", cpu->name, sizeof(cpu->name)},
    };
    char line[512];

    /* An empty line ends the first processor. */
    while (fgets(line, sizeof(line), f) && line[0] != '\n') {
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
            const char *value = value_of(line, fields[i].key);

            if (value)
                snprintf(fields[i].value, fields[i].size, "%s", value);
        }
    }
}

static int describe_cpu(struct pd_writer *w, struct st_error *err)
{
    struct cpu cpu = {0};
    char id[128];
    FILE *f = fopen("/proc/cpuinfo", "re");
    int rc = 0;

    if (!f)
        return 0;
    read_cpu(f, &cpu);
    fclose(f);
    if (cpu.name[0])
        rc = pd_writer_string(w, PD_FEAT_CPUDESC, cpu.name, err);
    snprintf(id, sizeof(id), "%s,%s,%s,%s", cpu.vendor, cpu.family, cpu.model, cpu.stepping);
    if (!rc && cpu.vendor[0])
        rc = pd_writer_string(w, PD_FEAT_CPUID, id, err);
    return rc;
}

static int describe_pmu(struct pd_writer *w, const char *name, struct st_error *err)
{
    char path[512];
    unsigned type;
    FILE *f;
    int n;

    snprintf(path, sizeof(path), PMUS "/%s/type", name);
    f = fopen(path, "re");
    if (!f)
        return 0;
    n = fscanf(f, "%u", &type);
    fclose(f);
    return n == 1 ? pd_writer_pmu(w, type, name, err) : 0;
}

static int describe_pmus(struct pd_writer *w, struct st_error *err)
{
    DIR *dir = opendir(PMUS);
    struct dirent *entry;
    int rc = 0;

    if (!dir)
        return 0;
    while (!rc && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            rc = describe_pmu(w, entry->d_name, err);
    closedir(dir);
    return rc;
}

int pd_describe_machine(struct pd_writer *w, struct st_error *err)
{
    struct utsname name;
    int rc = pd_writer_string(w, PD_FEAT_VERSION, "stalltrap " ST_VERSION, err);

    if (!rc && !uname(&name)) {
        rc = pd_writer_string(w, PD_FEAT_HOSTNAME, name.nodename, err);
        if (!rc)
            rc = pd_writer_string(w, PD_FEAT_OSRELEASE, name.release, err);
        if (!rc)
            rc = pd_writer_string(w, PD_FEAT_ARCH, name.machine, err);
    }
    if (!rc)
        rc = describe_cpu(w, err);
    return rc ? rc : describe_pmus(w, err);
}
