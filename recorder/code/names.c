/* The child that reads what JIT compilers wrote down. */
#include "recorder/code/names.h"
#include "base/clock.h"
#include "base/confined.h"
#include "recorder/code/jitdump.h"
#include "recorder/code/proc_maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAGIC = 0x4e414d45,
    OUT_BYTES = REC_PERF_MOST_SYMBOLS * 24 + REC_PERF_MOST_NAMES + 4096,
    HEAP_BYTES = 512 << 20, /* beyond what the recorder has mapped */
};

/* What the child writes: this, the symbols, the names. */
struct answer {
    uint32_t magic, cut;

    uint64_t symbols, names;
};

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- the child ---- */

static int take_range(void *ctx, const struct rec_map *m, struct st_error *err)
{
    struct rec_perf_map *map = ctx;
    struct rec_perf_range *last = map->within.n ? &map->within.at[map->within.n - 1] : NULL;

    (void)err;
    if (m->ino)
        return 0;
    if (last && last->end == m->start) { /* a function may cross the border of two */
        last->end = m->end;
        return 0;
    }
    return st_vec_push(&map->within, (struct rec_perf_range){m->start, m->end});
}

/* What the child does it for. */
struct reader {
    pid_t pid;

    unsigned patience;

    struct rec_perf_map map;

    int perf, dump;
};

static int open_files(void *ctx, int keep[ST_CONFINED_KEPT])
{
    struct reader *r = ctx;

    if (rec_proc_maps(r->pid, take_range, &r->map, NULL) || !r->map.within.n)
        return 1;
    r->perf = keep[0] = rec_perf_map_open(r->pid);
    r->dump = keep[1] = rec_jitdump_open(r->pid);
    return 0;
}

static int read_files(void *ctx, int out)
{
    struct reader *r = ctx;
    struct rec_perf_map *map = &r->map;
    struct answer a = {.magic = MAGIC};
    bool bad;

    map->stop_at = cpu_ns() + (uint64_t)r->patience * 500000;
    bad =
        (r->perf >= 0 && rec_perf_map_read(map, r->perf)) || (r->dump >= 0 && rec_jitdump_read(map, r->dump));
    rec_perf_map_sort(map);
    a.cut = bad ? REC_PERF_CUT_NAMES : map->cut;
    a.symbols = map->symbols.n;
    a.names = map->names.n;
    return st_confined_write(out, &a, sizeof(a)) ||
                   st_confined_write(out, map->symbols.at, map->symbols.n * sizeof(map->symbols.at[0])) ||
                   st_confined_write(out, map->names.at, map->names.n)
               ? -1
               : 0;
}

/* ---- the recorder ---- */

/* The child may have been taken over by what it read: nothing of its answer is believed. */
static bool is_sound(const struct rec_perf_map *map)
{
    if (map->symbols.n && (!map->names.n || map->names.at[map->names.n - 1]))
        return false;
    for (size_t i = 0; i < map->symbols.n; i++)
        if (map->symbols.at[i].name >= map->names.n ||
            (i && map->symbols.at[i].start < map->symbols.at[i - 1].start))
            return false;
    return true;
}

static int take_answer(const char *bytes, size_t n, struct rec_perf_map *map, enum rec_perf_cut *cut)
{
    const size_t symbol = sizeof(map->symbols.at[0]);
    struct answer a;

    if (n < sizeof(a))
        return -1;
    memcpy(&a, bytes, sizeof(a));
    if (a.magic != MAGIC || a.symbols > REC_PERF_MOST_SYMBOLS || a.names > REC_PERF_MOST_NAMES ||
        n != sizeof(a) + a.symbols * symbol + a.names || st_vec_reserve(&map->symbols, a.symbols + 1) ||
        st_vec_reserve(&map->names, a.names + 1))
        return -1;
    memcpy(map->symbols.at, bytes + sizeof(a), a.symbols * symbol);
    memcpy(map->names.at, bytes + sizeof(a) + a.symbols * symbol, a.names);
    map->symbols.n = a.symbols;
    map->names.n = a.names;
    *cut = a.cut <= REC_PERF_CUT_TIME ? a.cut : REC_PERF_CUT_NAMES;
    if (is_sound(map))
        return 0;
    rec_perf_map_free(map);
    return -1;
}

static void explain(enum rec_perf_cut cut, const struct st_confined_end *end, char *why, size_t size)
{
    static const char *const words[] = {
        [REC_PERF_WHOLE] = "",
        [REC_PERF_CUT_BYTES] =
            "the list of the names of code made at run time is longer than 32 MiB: older ones are left out",
        [REC_PERF_CUT_NAMES] =
            "there are more names of code made at run time than are kept: the rest are left out",
        [REC_PERF_CUT_TIME] =
            "reading the names of code made at run time took too long: the rest are left out",
    };

    snprintf(why, size, "%s",
             end->how == ST_CONFINED_LATE
                 ? "names of code made at run time were not read: there was not enough time"
             : end->how == ST_CONFINED_REFUSED
                 ? "names of code made at run time were not read: the process that "
                   "reads them could not be confined"
             : end->how ? "names of code made at run time could not be read"
                        : words[cut]);
}

static void read_by_child(pid_t pid, unsigned patience, struct rec_perf_map *map, char *why, size_t size)
{
    struct reader reader = {.pid = pid, .patience = patience, .perf = -1, .dump = -1};
    const struct st_confined_work work = {.prepare = open_files,
                                          .work = read_files,
                                          .ctx = &reader,
                                          .patience = patience,
                                          .memory = HEAP_BYTES,
                                          .most = OUT_BYTES};
    enum rec_perf_cut cut = REC_PERF_WHOLE;
    struct st_confined_end end;
    void *answer;
    size_t n;

    if (!st_confined_run(&work, &answer, &n, &end) && n && take_answer(answer, n, map, &cut))
        end.how = ST_CONFINED_UNSOUND;
    free(answer);
    explain(cut, &end, why, size);
}

unsigned rec_code_names_read(pid_t pid, unsigned patience, struct rec_perf_map *map, char *why, size_t size)
{
    uint64_t begun = st_mono_ns(), took;

    *map = (struct rec_perf_map){0};
    *why = '\0';
    if (patience)
        read_by_child(pid, patience, map, why, size);
    else
        explain(REC_PERF_WHOLE, &(struct st_confined_end){ST_CONFINED_LATE, 0}, why, size);
    took = (st_mono_ns() - begun) / 1000000;
    return took < patience ? (unsigned)took : patience;
}
