/* What holds of a map of names, whatever file it was read from. */
#ifndef ST_FUZZ_PERF_MAP_H
#define ST_FUZZ_PERF_MAP_H

#include "fuzz.h"

#include "recorder/code/perf_map.h"

/* Reads the bytes by `read` into a map of two ranges, as arm does, and looks at each name that it kept. */
static inline void fuzz_perf_map(const uint8_t *data, size_t size,
                                 int (*read)(struct rec_perf_map *map, int fd))
{
    struct rec_perf_map map = {0};
    struct rec_perf_range ranges[] = {{0x1000, 0x20000}, {0x7f0000000000, 0x7f0000100000}};
    size_t before = 0;

    fuzz_must(!st_vec_push(&map.within, ranges[0]) && !st_vec_push(&map.within, ranges[1]));
    fuzz_must(!read(&map, fuzz_file(data, size)));
    rec_perf_map_sort(&map);
    for (size_t i = 0; i < map.symbols.n; i++) {
        const struct rec_perf_symbol *s = &map.symbols.at[i];

        fuzz_must(rec_perf_map_wants(&map, s->start, s->size) && s->start >= before);
        fuzz_must(s->name < map.names.n && strlen(map.names.at + s->name) < map.names.n - s->name);
        fuzz_must(rec_perf_map_find(&map, s->start) <= i);
        before = s->start;
    }
    rec_perf_map_free(&map);
}

#endif
