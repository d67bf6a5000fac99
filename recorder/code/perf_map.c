/* /tmp/perf-PID.map. */
#include "recorder/code/perf_map.h"
#include "base/bisect.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LONGEST = 4096,    /* of a line */
    CLOCK_EVERY = 1024 /* turns */
};

/* The pid that the process knows itself by: the last of NSpid in /proc/PID/status. */
static pid_t inner_pid(pid_t pid)
{
    char path[64], line[512];
    pid_t inner = pid;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        char *last;

        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        last = strrchr(line, '\t');
        if (last)
            inner = atoi(last + 1);
        break;
    }
    if (f)
        fclose(f);
    return inner;
}

/* Anybody may put a file of that name into /tmp: it must be the process's. It is looked at before it is
 * opened for reading, which some devices notice. */
int rec_perf_map_open(pid_t pid)
{
    char path[128], process[64];
    struct stat file, owner;
    int at, fd = -1;

    snprintf(process, sizeof(process), "/proc/%d", pid);
    snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%d.map", pid, inner_pid(pid));
    at = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (at < 0)
        return -1;
    if (!fstat(at, &file) && S_ISREG(file.st_mode) && !stat(process, &owner) &&
        (file.st_uid == owner.st_uid || file.st_uid == 0)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    close(at);
    return fd;
}

/* ---- what is kept ---- */

bool rec_perf_map_wants(const struct rec_perf_map *map, uint64_t start, uint64_t size)
{
    size_t first = st_bisect(i, map->within.n, map->within.at[i].end <= start);

    return first < map->within.n && start >= map->within.at[first].start &&
           size <= map->within.at[first].end - start;
}

bool rec_perf_map_late(struct rec_perf_map *map, size_t turn)
{
    struct timespec t;

    if (!map->stop_at || turn % CLOCK_EVERY)
        return false;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    if ((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec < map->stop_at)
        return false;
    map->cut = REC_PERF_CUT_TIME;
    return true;
}

int rec_perf_map_add(struct rec_perf_map *map, uint64_t start, uint64_t size, const char *name, size_t len)
{
    struct rec_perf_symbol s = {start, size, map->names.n};

    if (!rec_perf_map_wants(map, start, size))
        return 0;
    if (map->symbols.n >= REC_PERF_MOST_SYMBOLS || len + 1 > REC_PERF_MOST_NAMES - map->names.n) {
        map->cut = REC_PERF_CUT_NAMES;
        return 1;
    }
    if (st_vec_reserve(&map->names, len + 1))
        return -1;
    memcpy(map->names.at + map->names.n, name, len);
    map->names.at[map->names.n + len] = '\0';
    map->names.n += len + 1;
    return st_vec_push(&map->symbols, s);
}

/* ---- reading ---- */

/* "START SIZE name", both hexadecimal; the name is the rest of the line. */
static int add_line(struct rec_perf_map *map, char *line, size_t len)
{
    char *at, *name;
    uint64_t start = strtoull(line, &at, 16), size;

    if (at == line || (*at != ' ' && *at != '\t'))
        return 0;
    size = strtoull(at, &name, 16);
    if (name == at || (*name != ' ' && *name != '\t'))
        return 0;
    name += strspn(name, " \t");
    return *name ? rec_perf_map_add(map, start, size, name, (size_t)(line + len - name)) : 0;
}

/* The rest of a line that is too long for its buffer. */
static void skip_line(FILE *f)
{
    int c;

    do
        c = getc_unlocked(f);
    while (c != '\n' && c != EOF);
}

/* Of a file that is too long its end: a compiler appends what it made last. */
static void skip_most(struct rec_perf_map *map, FILE *f)
{
    struct stat st;

    if (fstat(fileno(f), &st) || st.st_size <= REC_PERF_MOST_BYTES)
        return;
    map->cut = REC_PERF_CUT_BYTES;
    if (!fseeko(f, st.st_size - REC_PERF_MOST_BYTES, SEEK_SET))
        skip_line(f);
}

int rec_perf_map_read(struct rec_perf_map *map, int fd)
{
    char line[LONGEST];
    FILE *f = fdopen(fd, "r");
    size_t bytes = 0, turn = 0;
    int rc = 0;

    if (!f) {
        close(fd);
        return -1;
    }
    skip_most(map, f);
    /* It may grow while it is read. */
    while (!rc && bytes <= REC_PERF_MOST_BYTES && !rec_perf_map_late(map, ++turn) &&
           fgets(line, sizeof(line), f)) {
        size_t len = strcspn(line, "\n"), all = strlen(line);

        bytes += all ? all : 1;
        if (all == sizeof(line) - 1 && len == all)
            skip_line(f);
        line[len] = '\0';
        rc = add_line(map, line, len);
    }
    fclose(f);
    return rc < 0 ? -1 : 0;
}

/* ---- the finished map ---- */

static int by_place(const void *a, const void *b)
{
    const struct rec_perf_symbol *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

void rec_perf_map_sort(struct rec_perf_map *map)
{
    if (map->symbols.n)
        qsort(map->symbols.at, map->symbols.n, sizeof(map->symbols.at[0]), by_place);
}

size_t rec_perf_map_find(const struct rec_perf_map *map, uint64_t start)
{
    return st_bisect(i, map->symbols.n, map->symbols.at[i].start < start);
}

void rec_perf_map_free(struct rec_perf_map *map)
{
    st_vec_free(&map->symbols);
    st_vec_free(&map->names);
    st_vec_free(&map->within);
}
