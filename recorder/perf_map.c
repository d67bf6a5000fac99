/* /tmp/perf-PID.map. */
#include "recorder/perf_map.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_SYMBOLS = 1 << 20,
    LONGEST = 4096, /* of a line */
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

/* Anybody may put a file of that name into /tmp: it must be the process's. */
static FILE *open_map(pid_t pid)
{
    char path[128], process[64];
    struct stat file, owner;
    int fd;

    snprintf(process, sizeof(process), "/proc/%d", pid);
    snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%d.map", pid, inner_pid(pid));
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &file) || !S_ISREG(file.st_mode) || stat(process, &owner) ||
        (file.st_uid != owner.st_uid && file.st_uid != 0)) {
        close(fd);
        return NULL;
    }
    return fdopen(fd, "r");
}

/* "START SIZE name", both hexadecimal; the name is the rest of the line. */
static int add_line(struct rec_perf_map *map, char *line, uint64_t start, uint64_t end)
{
    struct rec_perf_symbol s = {.name = map->names.n};
    int at = 0;
    size_t len;

    if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &s.start, &s.size, &at) < 2 || !at)
        return 0;
    line += at;
    line[strcspn(line, "\n")] = '\0';
    if (!*line || s.start < start || s.start >= end || s.size > end - s.start)
        return 0;
    len = strlen(line) + 1;
    if (st_vec_reserve(&map->names, len))
        return -1;
    memcpy(map->names.at + map->names.n, line, len);
    map->names.n += len;
    return st_vec_push(&map->symbols, s);
}

int rec_perf_map_read(struct rec_perf_map *map, pid_t pid, uint64_t start, uint64_t end)
{
    char line[LONGEST];
    FILE *f = open_map(pid);
    int rc = 0;

    *map = (struct rec_perf_map){0};
    while (!rc && f && map->symbols.n < MOST_SYMBOLS && fgets(line, sizeof(line), f))
        rc = add_line(map, line, start, end);
    if (f)
        fclose(f);
    if (rc)
        rec_perf_map_free(map);
    return rc;
}

void rec_perf_map_free(struct rec_perf_map *map)
{
    st_vec_free(&map->symbols);
    st_vec_free(&map->names);
}
