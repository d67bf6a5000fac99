/* The child that reads what JIT compilers wrote down. */
#include "recorder/code_names.h"
#include "base/confine.h"
#include "recorder/jitdump.h"
#include "recorder/privileges.h"
#include "recorder/proc_maps.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    NOBODY = 65534,
    MAGIC = 0x4e414d45,
    OUT_BYTES = REC_PERF_MOST_SYMBOLS * 24 + REC_PERF_MOST_NAMES + 4096,
    HEAP_BYTES = 512 << 20, /* beyond what the recorder has mapped */
    END_MS = 1000,          /* for a child that was killed to be gone */
    NOT_CONFINED = 3,       /* its exit status: it has read nothing */
};

/* What the child writes: this, the symbols, the names. */
struct answer {
    uint32_t magic, cut;

    uint64_t symbols, names;
};

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
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

/* Closes everything but these three (-1: none), in any order. */
static void keep_only(int a, int b, int c)
{
    int keep[3] = {a, b, c};
    unsigned from = 0;

    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < 2; i++)
            if (keep[i] > keep[i + 1]) {
                int swap = keep[i];

                keep[i] = keep[i + 1];
                keep[i + 1] = swap;
            }
    for (int i = 0; i < 3; i++) {
        if (keep[i] < 0)
            continue;
        if ((unsigned)keep[i] > from)
            close_range(from, (unsigned)keep[i] - 1, 0);
        from = (unsigned)keep[i] + 1;
    }
    close_range(from, ~0u, 0);
}

static void bound(int resource, rlim_t most)
{
    const struct rlimit limit = {most, most};

    setrlimit(resource, &limit);
}

static void bound_memory(void)
{
#ifndef ST_SANITIZED
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%lu", &pages) == 1)
        bound(RLIMIT_AS, (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + HEAP_BYTES);
    if (f)
        fclose(f);
#endif
}

/* What reading the two files, keeping what is in them and writing the answer takes. */
static int keep_calls(void)
{
    static const int calls[] = {
        SYS_read,           SYS_pread64, SYS_lseek,      SYS_fstat,           SYS_newfstatat, SYS_fcntl,
        SYS_write,          SYS_close,   SYS_mmap,       SYS_munmap,          SYS_mremap,     SYS_mprotect,
        SYS_madvise,        SYS_brk,     SYS_futex,      SYS_clock_gettime,   SYS_getrandom,  SYS_sysinfo,
        SYS_rt_sigprocmask, SYS_exit,    SYS_exit_group, SYS_restart_syscall,
    };

#ifdef ST_SANITIZED
    return 0; /* its library's own work takes others */
#endif
    st_confine_landlock();
    return st_confine_calls(calls, sizeof(calls) / sizeof(calls[0]));
}

/* Where a container refuses it, the process ends, and names are missing: to read what others wrote as root is
 * worse. */
static int leave_root(void)
{
    if (geteuid())
        return 0;
    return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ? -1
                                                                                                        : 0;
}

/* From here on there is nothing that this process could do but read the two files and write the third. */
static int confine(unsigned seconds)
{
    bound_memory();
    bound(RLIMIT_CPU, seconds + 1);
    bound(RLIMIT_FSIZE, OUT_BYTES);
    bound(RLIMIT_CORE, 0);
    if (leave_root())
        return -1;
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* becoming another user has undone it */
    bound(RLIMIT_NPROC, 0);
    if (rec_drop_privileges())
        return -1;
    bound(RLIMIT_NOFILE, 0);
    return keep_calls();
}

static int write_all(int fd, const void *from, size_t size)
{
    const char *at = from;

    while (size) {
        ssize_t n = write(fd, at, size);

        if (n <= 0)
            return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

_Noreturn static void child(pid_t pid, int out, unsigned patience)
{
    struct rec_perf_map map = {0};
    struct answer a = {.magic = MAGIC};
    int perf, dump, bad;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rec_proc_maps(pid, take_range, &map, NULL) || !map.within.n)
        _exit(write_all(out, &a, sizeof(a)) ? 1 : 0);
    perf = rec_perf_map_open(pid);
    dump = rec_jitdump_open(pid);
    keep_only(out, perf, dump);
    if (confine(patience / 1000))
        _exit(NOT_CONFINED);
    map.stop_at = now_ns(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)patience * 500000;
    bad = (perf >= 0 && rec_perf_map_read(&map, perf)) || (dump >= 0 && rec_jitdump_read(&map, dump));
    rec_perf_map_sort(&map);
    a.cut = bad ? REC_PERF_CUT_NAMES : map.cut;
    a.symbols = map.symbols.n;
    a.names = map.names.n;
    bad = write_all(out, &a, sizeof(a)) ||
          write_all(out, map.symbols.at, map.symbols.n * sizeof(map.symbols.at[0])) ||
          write_all(out, map.names.at, map.names.n);
    _exit(bad ? 1 : 0);
}

/* ---- the recorder ---- */

static int read_all(int fd, void *to, size_t size, size_t from)
{
    char *at = to;

    while (size) {
        ssize_t n = pread(fd, at, size, (off_t)from);

        if (n <= 0)
            return -1;
        at += n;
        from += (size_t)n;
        size -= (size_t)n;
    }
    return 0;
}

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

static int read_answer(int fd, struct rec_perf_map *map, enum rec_perf_cut *cut)
{
    struct answer a;

    if (read_all(fd, &a, sizeof(a), 0) || a.magic != MAGIC || a.symbols > REC_PERF_MOST_SYMBOLS ||
        a.names > REC_PERF_MOST_NAMES || st_vec_reserve(&map->symbols, a.symbols + 1) ||
        st_vec_reserve(&map->names, a.names + 1) ||
        read_all(fd, map->symbols.at, a.symbols * sizeof(map->symbols.at[0]), sizeof(a)) ||
        read_all(fd, map->names.at, a.names, sizeof(a) + a.symbols * sizeof(map->symbols.at[0])))
        return -1;
    map->symbols.n = a.symbols;
    map->names.n = a.names;
    *cut = a.cut <= REC_PERF_CUT_TIME ? a.cut : REC_PERF_CUT_NAMES;
    if (is_sound(map))
        return 0;
    rec_perf_map_free(map);
    return -1;
}

/* Waits for the end of the child, which is killed when it is late. 0: it has done its work; NOT_CONFINED; -1.
 */
static int wait_for(pid_t pid, unsigned patience, bool *late)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    int status = -1, rc = 0;

    *late = end.fd < 0 || poll(&end, 1, (int)patience) <= 0;
    if (*late)
        kill(pid, SIGKILL);
    if (*late && end.fd >= 0)
        rc = poll(&end, 1, END_MS);
    /* One that the kernel does not let go is left to whoever comes after us. */
    waitpid(pid, &status, *late && rc <= 0 ? WNOHANG : 0);
    if (end.fd >= 0)
        close(end.fd);
    if (!WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == NOT_CONFINED ? WEXITSTATUS(status) : -1;
}

/* `failed`: as wait_for() has it. */
static void explain(enum rec_perf_cut cut, bool late, int failed, char *why, size_t size)
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
             late ? "names of code made at run time were not read: there was not enough time"
             : failed == NOT_CONFINED ? "names of code made at run time were not read: the process that "
                                        "reads them could not be confined"
             : failed                 ? "names of code made at run time could not be read"
                                      : words[cut]);
}

static void read_by_child(pid_t pid, unsigned patience, struct rec_perf_map *map, char *why, size_t size)
{
    int out = memfd_create("stalltrap-names", MFD_CLOEXEC);
    pid_t reader = out < 0 ? -1 : fork();
    enum rec_perf_cut cut = REC_PERF_WHOLE;
    bool late = false;
    int failed = -1;

    if (reader == 0)
        child(pid, out, patience);
    if (reader > 0)
        failed = wait_for(reader, patience, &late);
    if (!failed)
        failed = read_answer(out, map, &cut);
    explain(cut, late, failed, why, size);
    if (out >= 0)
        close(out);
}

unsigned rec_code_names_read(pid_t pid, unsigned patience, struct rec_perf_map *map, char *why, size_t size)
{
    uint64_t begun = now_ns(CLOCK_MONOTONIC), took;

    *map = (struct rec_perf_map){0};
    *why = '\0';
    if (patience)
        read_by_child(pid, patience, map, why, size);
    else
        explain(REC_PERF_WHOLE, true, 0, why, size);
    took = (now_ns(CLOCK_MONOTONIC) - begun) / 1000000;
    return took < patience ? (unsigned)took : patience;
}
