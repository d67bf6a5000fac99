/* The executable mappings of a process: proc(5), /proc/PID/maps. */
#include "recorder/code/proc_maps.h"
#include "base/infile.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void set_name(struct rec_map *map, const char *name)
{
    static const char mark[] = " (deleted)";
    size_t len = strlen(name);

    map->deleted = len > sizeof(mark) && !strcmp(name + len - (sizeof(mark) - 1), mark);
    /* As the kernel's records call it, which know nothing of names by PR_SET_VMA_ANON_NAME. */
    if (!*name || !strncmp(name, "[anon:", 6))
        name = "//anon";
    snprintf(map->name, sizeof(map->name), "%s", name);
}

/* Returns whether the line is a whole one. */
static bool parse_line(char *line, struct rec_map *map)
{
    char perms[5] = "";
    int at = 0;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
               &map->start, &map->end, perms, &map->pgoff, &map->maj, &map->min, &map->ino, &at) < 7 ||
        !at)
        return false;
    map->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
                (perms[2] == 'x' ? PROT_EXEC : 0);
    map->flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
    set_name(map, line + at);
    return true;
}

int rec_proc_maps(pid_t pid, rec_map_fn *fn, void *ctx, struct st_error *err)
{
    char path[64], *line = NULL;
    struct rec_map map;
    size_t room = 0;
    FILE *f;
    int rc = 0;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    f = fopen(path, "re");
    if (!f)
        return st_fail_errno(err, ST_EFAIL, "cannot read the mappings of process %d", pid);
    while (!rc && getline(&line, &room, f) > 0)
        if (parse_line(line, &map) && (map.prot & PROT_EXEC))
            rc = fn(ctx, &map, err);
    free(line);
    fclose(f);
    return rc;
}

static bool same_file(const struct rec_map *map, const struct stat *st)
{
    return st->st_ino == map->ino && major(st->st_dev) == map->maj && minor(st->st_dev) == map->min;
}

int rec_map_open(pid_t pid, const struct rec_map *map)
{
    char path[PATH_MAX + 64];
    struct stat st;
    int fd;

    if (!map->ino)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, map->start, map->end);
    fd = st_infile_open(path, ST_INFILE_FILE);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof(path), "/proc/%d/root%s", pid, map->name);
    fd = st_infile_open(path, ST_INFILE_FILE);
    if (fd >= 0 && (fstat(fd, &st) || !same_file(map, &st))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool rec_map_findable(const struct rec_map *map)
{
    struct stat st;

    if (map->name[0] != '/' || map->deleted || !map->ino || stat(map->name, &st) || !S_ISREG(st.st_mode))
        return false;
    if (st.st_uid == geteuid() ? !(st.st_mode & S_IRUSR) : !(st.st_mode & S_IROTH))
        return false;
    /* Some file systems (overlay, btrfs) show another device number in maps than in stat. */
    return st.st_ino == map->ino;
}

size_t rec_proc_read(int memory, uint64_t address, void *to, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = pread(memory, (char *)to + done, size - done, (off_t)(address + done));

        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}
