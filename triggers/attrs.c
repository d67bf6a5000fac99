/* What /proc tells about a stall that fired. */
#include "triggers/attrs.h"
#include "triggers/peer.h"
#include "triggers/record_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TCP_LISTEN  10         /* include/net/tcp_states.h */
#define PF_KTHREAD  0x00200000 /* include/linux/sched.h */
#define TASK_TRACED 0x8

/* Calls whose first argument is the descriptor that they wait for. */
static bool is_of_a_file(int32_t call)
{
    static const int calls[] = {SYS_read,     SYS_write,     SYS_readv,    SYS_writev,          SYS_pread64,
                                SYS_pwrite64, SYS_preadv,    SYS_pwritev,  SYS_preadv2,         SYS_pwritev2,
                                SYS_fsync,    SYS_fdatasync, SYS_sendfile, SYS_ftruncate,       SYS_fallocate,
                                SYS_syncfs,   SYS_ioctl,     SYS_flock,    SYS_sync_file_range, SYS_fcntl};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (call == calls[i])
            return true;
    return false;
}

static void add_file(struct st_stall_record *r)
{
    char path[64], name[ST_STALL_EXTRA];
    ssize_t n;

    /* Of an event loop that has been away it is the longest of several, without its arguments. */
    if (!is_of_a_file(r->syscall) || r->flags & ST_STALL_COMPAT || trg_attribute(r, "syscall_ns"))
        return;
    snprintf(path, sizeof(path), "/proc/%u/fd/%d", r->pid, (int)r->syscall_args[0]);
    n = readlink(path, name, sizeof(name) - 1);
    if (n <= 0)
        return;
    name[n] = '\0';
    trg_add_attribute(r, "file", name);
}

/* A line of /proc/PID/net/tcp: "0: 0100007F:1F90 00000000:0000 0A ...", numbers hexadecimal. */
static bool listens(const char *path, unsigned port)
{
    FILE *f = fopen(path, "re");
    char line[512];
    bool found = false;

    while (f && !found && fgets(line, sizeof(line), f)) {
        unsigned local, state;

        found = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) == 2 &&
                local == port && state == TCP_LISTEN;
    }
    if (f)
        fclose(f);
    return found;
}

static void add_accepted(struct st_stall_record *r)
{
    const char *port = trg_attribute(r, "local_port");
    char path[64];
    bool server;

    if (!port || !trg_attribute(r, "nodelay")) /* TCP only */
        return;
    snprintf(path, sizeof(path), "/proc/%u/net/tcp", r->pid);
    server = listens(path, (unsigned)atoi(port));
    snprintf(path, sizeof(path), "/proc/%u/net/tcp6", r->pid);
    if (server || listens(path, (unsigned)atoi(port)))
        trg_add_attribute(r, "accepted", "1");
}

/* Whether who got the CPU is a thread of the kernel's own: any thread may call itself ksoftirqd. The command
 * name in /proc/TID/stat may hold anything, ")" included. */
static void add_next_kernel(struct st_stall_record *r)
{
    char path[64], line[512];
    const char *behind;
    unsigned flags;
    FILE *f;

    if (!r->next_tid)
        return;
    snprintf(path, sizeof(path), "/proc/%u/stat", r->next_tid);
    f = fopen(path, "re");
    if (!f)
        return;
    behind = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
    if (behind && sscanf(behind, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & PF_KTHREAD)
        trg_add_attribute(r, "next_kernel", "1");
    fclose(f);
}

/* Who traces a thread that is in a tracer's hands now. */
static void add_tracer(struct st_stall_record *r)
{
    char path[64], line[256], text[64], state = 0;
    unsigned tracer = 0;
    FILE *f;

    if (!(r->state & TASK_TRACED) || !(r->flags & ST_STALL_ONGOING))
        return;
    snprintf(path, sizeof(path), "/proc/%u/task/%u/status", r->pid, r->tid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f) && sscanf(line, "TracerPid: %u", &tracer) != 1)
        sscanf(line, "State: %c", &state);
    if (f)
        fclose(f);
    if (!tracer || state != 't')
        return;
    trg_process_text(tracer, text, sizeof(text));
    trg_add_attribute(r, "tracer", text);
}

static bool waits_for_a_file_lock(const struct st_stall_record *r)
{
    return r->flags & ST_STALL_ONGOING && !(r->flags & ST_STALL_COMPAT) &&
           (r->syscall == SYS_flock || r->syscall == SYS_fcntl);
}

/* A line of /proc/locks: "3: FLOCK  ADVISORY  WRITE 1234 08:01:131 0 EOF"; those that wait for it follow,
 * with "->" behind the number. A lock of an open file description has -1 for its process. */
struct lock_line {
    char type[16];

    int pid;

    unsigned long long inode;

    bool waits;
};

static bool read_lock_line(const char *line, struct lock_line *l)
{
    l->waits = strstr(line, "-> ") != NULL;
    return sscanf(line,
                  l->waits ? "%*d: -> %15s %*s %*s %d %*x:%*x:%llu" : "%*d: %15s %*s %*s %d %*x:%*x:%llu",
                  l->type, &l->pid, &l->inode) == 3;
}

/* Who had taken what a process waits for: the line with "type" and "inode" that it waits behind; -1: not
 * found. */
static int find_holder(FILE *f, const char *type, int pid, unsigned long long inode)
{
    struct lock_line l;
    char line[256];
    int holder = -1;

    while (fgets(line, sizeof(line), f)) {
        if (!read_lock_line(line, &l))
            continue;
        if (!l.waits)
            holder = l.pid;
        else if (l.pid == pid && l.inode == inode && !strcmp(l.type, type))
            return holder;
    }
    return -1;
}

static void add_lock_holder(struct st_stall_record *r)
{
    char path[64], text[64];
    struct stat file;
    int holder = -1;
    FILE *f;

    if (!waits_for_a_file_lock(r))
        return;
    snprintf(path, sizeof(path), "/proc/%u/fd/%d", r->pid, (int)r->syscall_args[0]);
    f = stat(path, &file) ? NULL : fopen("/proc/locks", "re");
    if (f) {
        holder = find_holder(f, r->syscall == SYS_flock ? "FLOCK" : "POSIX", (int)r->pid, file.st_ino);
        fclose(f);
    }
    if (holder <= 0 || holder == (int)r->pid)
        return;
    trg_process_text((unsigned)holder, text, sizeof(text));
    trg_add_attribute(r, "lock_holder", text);
}

void trg_add_attrs(struct st_stall_record *r)
{
    if (r->extra_n > ST_STALL_EXTRA)
        return;
    add_file(r);
    add_accepted(r);
    add_next_kernel(r);
    add_tracer(r);
    add_lock_holder(r);
    trg_add_peer(r);
}
