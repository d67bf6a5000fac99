/* Names of kernel addresses. */
#include "recorder/code/kallsyms.h"
#include "base/bisect.h"
#include "base/vec.h"

#include <inttypes.h>
#include <stdatomic.h>
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

    uint64_t modules; /* a hash of which modules were loaded, and where */

    atomic_uint holders;
};

enum {
    FARTHEST = 1 << 20, /* from a symbol's start: the last one before a hole has no end */
    MODULES_LINE = 4096
};

static int by_start(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

/* "ffffffff81000000 T name\t[module]\n"; only code counts. 0, or -1 when memory ran out. By hand, since there
 * are some hundred thousand lines and a trap may wait for them. */
static int add_line(struct rec_kallsyms *t, char *line)
{
    struct symbol s = {.name = t->names.n};
    char *at, *module;
    size_t size;

    s.start = strtoull(line, &at, 16);
    if (!s.start || at[0] != ' ' || !at[1] || !strchr("tTwW", at[1]) || at[2] != ' ')
        return 0;
    at += 3;
    at[strcspn(at, "\n")] = '\0';
    module = strchr(at, '\t');
    if (module)
        *module = ' ';
    size = strlen(at) + 1;
    if (size == 1)
        return 0;
    if (st_vec_reserve(&t->names, size))
        return -1;
    memcpy(t->names.at + t->names.n, at, size);
    t->names.n += size;
    return st_vec_push(&t->symbols, s);
}

static uint64_t add_text(uint64_t hash, const char *text)
{
    while (*text)
        hash = (hash ^ (unsigned char)*text++) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/* "name size users dependents state 0xffffffffc0000000": what changes while a module stays is left out. */
static uint64_t modules_loaded(void)
{
    FILE *f = fopen("/proc/modules", "re");
    uint64_t hash = 0xcbf29ce484222325u;
    char line[MODULES_LINE];

    while (f && fgets(line, sizeof(line), f)) {
        const char *address = strstr(line, " 0x");

        if (address)
            hash = add_text(hash, address);
        line[strcspn(line, " ")] = '\0';
        hash = add_text(hash, line);
    }
    if (f)
        fclose(f);
    return hash;
}

bool rec_kallsyms_stale(const struct rec_kallsyms *t)
{
    return t->modules != modules_loaded();
}

struct rec_kallsyms *rec_kallsyms_open(const char *path)
{
    struct rec_kallsyms *t = calloc(1, sizeof(*t));
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    int rc = t && f ? 0 : -1;

    if (t) {
        t->modules = modules_loaded();
        t->holders = 1;
    }
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
    size_t first = st_bisect(i, t->symbols.n, t->symbols.at[i].start <= address);

    if (!first || address - t->symbols.at[first - 1].start > FARTHEST)
        return NULL;
    *start = t->symbols.at[first - 1].start;
    return t->names.at + t->symbols.at[first - 1].name;
}

struct rec_kallsyms *rec_kallsyms_hold(struct rec_kallsyms *t)
{
    if (t)
        atomic_fetch_add(&t->holders, 1);
    return t;
}

void rec_kallsyms_close(struct rec_kallsyms *t)
{
    if (!t || atomic_fetch_sub(&t->holders, 1) > 1)
        return;
    st_vec_free(&t->symbols);
    st_vec_free(&t->names);
    free(t);
}
