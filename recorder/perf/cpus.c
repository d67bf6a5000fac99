/* The CPUs that are online. */
#include "recorder/perf/cpus.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_CPUS = 65536 };

int rec_cpus_parse(const char *text, rec_cpu_list *cpus, struct st_error *err)
{
    for (;;) {
        char *end;
        long first = strtol(text, &end, 10), last = first;

        if (end == text || first < 0)
            break;
        if (*end == '-') {
            text = end + 1;
            last = strtol(text, &end, 10);
            if (end == text)
                break;
        }
        if (last < first || last >= MOST_CPUS)
            break;
        for (long cpu = first; cpu <= last; cpu++)
            if (st_vec_push(cpus, (int)cpu))
                return st_nomem(err, "the list of CPUs");
        if (*end != ',')
            return 0;
        text = end + 1;
    }
    return st_fail(err, ST_EFAIL, "'%.40s' is no list of CPUs", text);
}

int rec_cpus_online(rec_cpu_list *cpus, struct st_error *err)
{
    static const char path[] = "/sys/devices/system/cpu/online";
    char text[4096];
    FILE *f = fopen(path, "re");
    bool got;

    if (!f)
        return st_fail_errno(err, ST_EFAIL, "cannot read %s", path);
    got = fgets(text, sizeof(text), f) != NULL;
    fclose(f);
    return got ? rec_cpus_parse(text, cpus, err) : st_fail(err, ST_EFAIL, "%s is empty", path);
}

static bool has(const rec_cpu_list *cpus, int cpu)
{
    for (size_t i = 0; i < cpus->n; i++)
        if (cpus->at[i] == cpu)
            return true;
    return false;
}

const char *rec_cpus_differ(const rec_cpu_list *a, const rec_cpu_list *b, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (int list = 0; list < 2; list++) {
        const rec_cpu_list *in = list ? b : a, *out = list ? a : b;

        for (size_t i = 0; i < in->n && at < size; i++)
            if (!has(out, in->at[i]))
                at += (size_t)snprintf(text + at, size - at, "%s%d", at ? "," : "", in->at[i]);
    }
    return text;
}

const char *rec_cpus_changed(const rec_cpu_list *then, char *text, size_t size)
{
    rec_cpu_list now = {0};

    text[0] = '\0';
    if (!rec_cpus_online(&now, NULL))
        rec_cpus_differ(then, &now, text, size);
    st_vec_free(&now);
    return text;
}
