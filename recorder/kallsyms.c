/* Names of kernel addresses. */
#include "recorder/kallsyms.h"
#include "base/vec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
    uint64_t start;

    size_t name; /* offset in `names` */
};

struct rec_kallsyms {
    ST_VEC(struct symbol) symbols;

    ST_VEC(char) names;
};

enum {
    FARTHEST = 1 << 20 /* from a symbol's start: the last one before a hole has no end */
};

static int by_start(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

/* "ffffffff81000000 T name\t[module]\n"; only code counts. 0, or -1 when memory ran out. */
static int add_line(struct rec_kallsyms *t, char *line)
{
    struct symbol s = {.name = t->names.n};
    char name[512], module[128] = "", type, text[sizeof(name) + sizeof(module) + 2];
    int n = sscanf(line, "%" SCNx64 " %c %511s %127s", &s.start, &type, name, module);

    if (n < 3 || !s.start || !strchr("tTwW", type))
        return 0;
    n = snprintf(text, sizeof(text), "%s%s%s", name, *module ? " " : "", module);
    if (st_vec_reserve(&t->names, (size_t)n + 1))
        return -1;
    memcpy(t->names.at + t->names.n, text, (size_t)n + 1);
    t->names.n += (size_t)n + 1;
    return st_vec_push(&t->symbols, s);
}

struct rec_kallsyms *rec_kallsyms_open(const char *path)
{
    struct rec_kallsyms *t = calloc(1, sizeof(*t));
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    int rc = t && f ? 0 : -1;

    while (!rc && getline(&line, &room, f) > 0)
        rc = add_line(t, line);
    free(line);
    if (f)
        fclose(f);
    if (rc || !t->symbols.n) {
        rec_kallsyms_close(t);
        return NULL;
    }
    qsort(t->symbols.at, t->symbols.n, sizeof(*t->symbols.at), by_start);
    return t;
}

const char *rec_kallsyms_find(const struct rec_kallsyms *t, uint64_t address, uint64_t *start)
{
    size_t low = 0, high = t->symbols.n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (t->symbols.at[mid].start <= address)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low || address - t->symbols.at[low - 1].start > FARTHEST)
        return NULL;
    *start = t->symbols.at[low - 1].start;
    return t->names.at + t->symbols.at[low - 1].name;
}

void rec_kallsyms_close(struct rec_kallsyms *t)
{
    if (!t)
        return;
    st_vec_free(&t->symbols);
    st_vec_free(&t->names);
    free(t);
}
