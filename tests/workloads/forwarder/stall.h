/* Stalls on order: what --stall KIND:MS:EVERY asks for, when it is due, and the record of each one. */
#ifndef FORWARDER_STALL_H
#define FORWARDER_STALL_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stall;

/* How the fsync stall gets its slow disk. */
enum fsync_via {
    /* the disk under --dir if it can be made to stall as ordered, else a slow disk of our own */
    FSYNC_VIA_AUTO,

    /* the disk under --dir */
    FSYNC_VIA_DISK,

    /* a FUSE file whose fsync takes MS */
    FSYNC_VIA_FUSE,
};

struct stall_config {
    /* how many stalls of each --stall there are in all; 0: no end */
    uint64_t count;

    /* folder for the file of the fsync stall */
    const char *dir;

    enum fsync_via fsync_via;
};

/* One kind of stall: an ops table. */
struct stall_kind {
    const char *name;

    /* the only MS this kind can do because the kernel sets it, or 0: any from 1 */
    unsigned fixed_ms;

    /* Gets everything ready before the first worker runs: files, sockets, helper threads.
     * Returns 0, or -1 after a message on stderr; finish() is called in both cases. */
    int (*prepare)(struct stall *stall, const struct stall_config *config);

    /* Stalls once, in the worker's thread. Sets start_ns and end_ns right around the call that stalls.
     * Returns 0, or -1 if the stall could not be made (it is then logged as failed). NULL: the kind has
     * threads of its own and the workers never stall. */
    int (*run)(struct stall *stall, uint64_t *start_ns, uint64_t *end_ns);

    /* Lets everything go; must stand a prepare() that failed half way. May be NULL. */
    void (*finish)(struct stall *stall);
};

/* One --stall option. */
struct stall {
    const struct stall_kind *kind;
    unsigned ms;
    unsigned every_ms;

    /* stalls still to come; only the worker that claimed the stall changes it */
    uint64_t left;

    /* when the next one is due (CLOCK_MONOTONIC ns); STALL_NEVER: not started, running just now, or all done
     */
    _Atomic uint64_t due_ns;

    /* what the kind keeps between prepare() and finish() */
    void *state;
};

#define STALL_NEVER UINT64_MAX
#define STALLS_MAX  16

extern const struct stall_kind stall_kind_fsync, stall_kind_lock, stall_kind_busy, stall_kind_slowsend,
    stall_kind_nagle, stall_kind_idle, stall_kind_forever;

/* Adds the stall that the words KIND:MS:EVERY ask for. Returns 0, or -1 after a message that shows the words.
 */
int stalls_add(const char *words);

/* Prepares all stalls. Returns 0, or -1 after a message; stalls_finish() is to be called in both cases. */
int stalls_prepare(const struct stall_config *config);

/* From now on stalls happen; the first of each is due EVERY ms later. A second call does nothing. */
void stalls_start(void);

/* Waits (idle, on a condition variable) until stalls_start() was called. */
void stalls_wait_for_start(void);

/* Called by a worker after each chunk it has forwarded: runs every stall that is due. */
void maybe_stall(void);

/* One log line for one stall; end_ns 0: it does not end. */
void log_stall(const struct stall *stall, uint64_t start_ns, uint64_t end_ns, bool failed);

/* How many stalls have been logged so far. */
uint64_t stalls_logged(void);

void stalls_finish(void);

/* Helpers of the kinds. */

/* Sleeps until the CLOCK_MONOTONIC time; signals do not end it. */
void sleep_until_ns(uint64_t when_ns);

/* A connected pair of TCP sockets over 127.0.0.1. buffer_bytes: SO_SNDBUF of the first and SO_RCVBUF of the
 * second; segment_bytes: TCP_MAXSEG of both; 0: the system's. Returns 0, or -1 with errno set and nothing
 * left open. */
int tcp_pair(int pair[2], int buffer_bytes, int segment_bytes);

/* Closes both (-1: not open) and sets them to -1. */
void close_pair(int pair[2]);

/* sem_wait() that signals do not end. */
void wait_for_post(sem_t *semaphore);

#endif
