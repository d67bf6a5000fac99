/* The other end of a TCP connection, as /proc has it. */
#include "triggers/peer.h"
#include "triggers/record_text.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    TCP_ESTABLISHED = 1, /* include/net/tcp_states.h */
    TCP_LISTENING = 10,
    MOST_DESCRIPTORS = 20000,
};

struct end {
    unsigned char address[16]; /* IPv4 as ::ffff:A.B.C.D */

    unsigned port;
};

struct row {
    struct end local, remote;

    unsigned state;

    unsigned long inode;
};

/* "0100007F:1F90", or 32 digits: words of 32 bits in the host's order, then the port. */
static bool read_end(const char *text, struct end *e)
{
    size_t digits = strcspn(text, ":"), words = digits / 8;
    char word[9] = "";

    if (digits != 8 && digits != 32)
        return false;
    memset(e, 0, sizeof(*e));
    memset(e->address + 10, 0xff, 2);
    for (size_t i = 0; i < words; i++) {
        uint32_t number;

        memcpy(word, text + 8 * i, 8);
        number = (uint32_t)strtoul(word, NULL, 16);
        memcpy(e->address + (words == 1 ? 12 : 4 * i), &number, sizeof(number));
    }
    e->port = (unsigned)strtoul(text + digits + 1, NULL, 16);
    return text[digits] == ':';
}

/* "0: LOCAL REMOTE STATE tx:rx tr:when retransmits uid timeout INODE ..." (Documentation/networking/
 * proc_net_tcp.rst) */
static bool read_row(const char *line, struct row *r)
{
    char local[64], remote[64];

    return sscanf(line, " %*d: %63s %63s %x %*s %*s %*s %*u %*u %lu", local, remote, &r->state, &r->inode) ==
               4 &&
           read_end(local, &r->local) && read_end(remote, &r->remote);
}

typedef bool row_fn(const struct row *r, const void *wanted);

static bool find_row(unsigned pid, row_fn *fits, const void *wanted, struct row *found)
{
    static const char *const files[] = {"tcp", "tcp6"};
    char path[64], line[512];
    bool is = false;

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !is; i++) {
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%u/net/%s", pid, files[i]);
        f = fopen(path, "re");
        while (f && !is && fgets(line, sizeof(line), f))
            is = read_row(line, found) && fits(found, wanted);
        if (f)
            fclose(f);
    }
    return is;
}

static bool has_inode(const struct row *r, const void *wanted)
{
    return r->inode == *(const unsigned long *)wanted && r->state == TCP_ESTABLISHED;
}

static bool is_end(const struct end *a, const struct end *b)
{
    return a->port == b->port && !memcmp(a->address, b->address, sizeof(a->address));
}

static bool is_other_end(const struct row *r, const void *wanted)
{
    const struct row *mine = wanted;

    return is_end(&r->local, &mine->remote) && is_end(&r->remote, &mine->local);
}

/* Its own port, and who is at the other end: what a record of offcpu has. */
static bool is_own_end(const struct row *r, const void *wanted)
{
    const struct row *mine = wanted;

    return r->local.port == mine->local.port && is_end(&r->remote, &mine->remote);
}

static bool listens_there(const struct row *r, const void *wanted)
{
    return r->state == TCP_LISTENING && r->local.port == ((const struct row *)wanted)->local.port;
}

static void put_end(const struct end *e, char *text, size_t size)
{
    static const unsigned char four[12] = {[10] = 0xff, [11] = 0xff};
    char address[INET6_ADDRSTRLEN];

    if (!memcmp(e->address, four, sizeof(four)))
        snprintf(text, size, "%s:%u", inet_ntop(AF_INET, e->address + 12, address, sizeof(address)), e->port);
    else
        snprintf(text, size, "[%s]:%u", inet_ntop(AF_INET6, e->address, address, sizeof(address)), e->port);
}

/* "127.0.0.1:80", "[::1]:80" */
static bool read_peer(const char *text, struct end *e)
{
    char address[INET6_ADDRSTRLEN] = "";

    memset(e, 0, sizeof(*e));
    if (sscanf(text, "[%45[0-9a-fA-F:.]]:%u", address, &e->port) == 2)
        return inet_pton(AF_INET6, address, e->address) == 1;
    memset(e->address + 10, 0xff, 2);
    return sscanf(text, "%45[0-9.]:%u", address, &e->port) == 2 &&
           inet_pton(AF_INET, address, e->address + 12) == 1;
}

/* The socket that the thread reads from. */
static bool find_read_socket(const struct st_stall_record *r, struct row *mine)
{
    static const int calls[] = {SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmsg};
    char path[64], name[64];
    unsigned long inode;
    bool reads = false;
    ssize_t n;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        reads |= r->syscall == calls[i];
    if (!reads || !(r->flags & ST_STALL_ONGOING) || r->flags & ST_STALL_COMPAT)
        return false;
    snprintf(path, sizeof(path), "/proc/%u/fd/%d", r->pid, (int)r->syscall_args[0]);
    n = readlink(path, name, sizeof(name) - 1);
    name[n > 0 ? n : 0] = '\0';
    return sscanf(name, "socket:[%lu]", &inode) == 1 && find_row(r->pid, has_inode, &inode, mine);
}

static bool find_told_socket(const struct st_stall_record *r, struct row *mine)
{
    const char *peer = trg_attribute(r, "peer"), *port = trg_attribute(r, "local_port");
    struct row wanted = {.state = 0};

    if (!peer || !port || !read_peer(peer, &wanted.remote))
        return false;
    wanted.local.port = (unsigned)strtoul(port, NULL, 10);
    return find_row(r->pid, is_own_end, &wanted, mine);
}

/* Whether the process has the socket; `left` is how many descriptors may still be looked at. */
static bool has_socket(const char *pid, const char *socket, int *left)
{
    char path[300], name[64];
    struct dirent *entry;
    bool has = false;
    DIR *folder;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    folder = opendir(path);
    while (folder && !has && (entry = readdir(folder)) && (*left)-- > 0) {
        n = readlinkat(dirfd(folder), entry->d_name, name, sizeof(name) - 1);
        name[n > 0 ? n : 0] = '\0';
        has = !strcmp(name, socket);
    }
    if (folder)
        closedir(folder);
    return has;
}

/* 0: none was found, or several have it: which of them answers is not known. */
static unsigned find_owner(unsigned long inode)
{
    DIR *proc = opendir("/proc");
    int left = MOST_DESCRIPTORS, owners = 0;
    struct dirent *entry;
    unsigned owner = 0;
    char socket[64];

    snprintf(socket, sizeof(socket), "socket:[%lu]", inode);
    while (proc && left > 0 && (entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && has_socket(entry->d_name, socket, &left)) {
            owner = (unsigned)strtoul(entry->d_name, NULL, 10);
            owners++;
        }
    if (proc)
        closedir(proc);
    return owners == 1 && left > 0 ? owner : 0;
}

void trg_add_peer(struct st_stall_record *record)
{
    struct row mine, other;
    char text[80];
    unsigned owner;

    if (find_read_socket(record, &mine)) {
        put_end(&mine.remote, text, sizeof(text));
        trg_add_attribute(record, "peer", text);
        if (find_row(record->pid, listens_there, &mine, &other))
            trg_add_attribute(record, "accepted", "1");
    } else if (!find_told_socket(record, &mine)) {
        return;
    }
    owner = find_row(record->pid, is_other_end, &mine, &other) && other.inode ? find_owner(other.inode) : 0;
    if (!owner)
        return;
    trg_process_text(owner, text, sizeof(text));
    trg_add_attribute(record, "peer_process", text);
}
