/* /proc/PID/maps. */
#include "triggers/mappings.h"

#include <stdio.h>
#include <string.h>

enum { MOST_MAPPINGS = 20000 };

static bool parse(const char *line, struct trg_mapping *m)
{
    unsigned long long start, end, offset;
    char access[8];
    int at = 0;

    if (sscanf(line, "%llx-%llx %7s %llx %*s %llu %n", &start, &end, access, &offset, &m->inode, &at) < 5)
        return false;
    m->start = start;
    m->end = end;
    m->offset = offset;
    m->code = access[2] == 'x';
    snprintf(m->name, sizeof(m->name), "%.*s", (int)strcspn(line + at, "\n"), line + at);
    return true;
}

bool trg_find_mapping(pid_t pid, trg_mapping_fn *is, void *ctx, struct trg_mapping *m)
{
    char path[64], line[PATH_MAX + 128];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    f = fopen(path, "re");
    for (int i = 0; f && !found && i < MOST_MAPPINGS && fgets(line, sizeof(line), f); i++)
        found = parse(line, m) && is(ctx, m);
    if (f)
        fclose(f);
    return found;
}
