/* What a process gives up, for ever, before it reads what others wrote. */
#ifndef ST_BASE_CONFINE_H
#define ST_BASE_CONFINE_H

#include <stddef.h>

/* Landlock without an exception: from now on no file is opened, made or removed by a path, and, where the
 * kernel knows of these, no TCP port is bound or connected to and no process outside gets a signal. A kernel
 * without Landlock changes nothing. Needs no_new_privs. */
void st_confine_landlock(void);

/* From now on the calling thread may make the `n` system calls `calls` (numbers of x86-64, at most
 * ST_CONFINE_MOST) and no other: any other ends the process (SIGSYS). mmap and mprotect, where they are among
 * them, give no memory that is code, and fcntl has no command beyond F_GETFL: none makes a descriptor send
 * signals. Takes no memory. Needs no_new_privs. Returns 0, or -1 with errno where the kernel has no such
 * filters or `n` is too large. */
enum { ST_CONFINE_MOST = 64 };
int st_confine_calls(const int *calls, size_t n);

/* What a process that reads for another one may still use. */
struct st_confine_bounds {
    size_t memory; /* bytes beyond what is mapped */

    unsigned long seconds; /* of a processor */

    unsigned long descriptors; /* new ones have numbers below this */
};

/* From now on this process can do nothing but read the descriptors that it has, take more of them over a
 * socket, and write to those that it has: no capability, no other user's rights (root becomes nobody, without
 * groups), no file by a path, no new process, no code that it has not yet, no core file; it goes first where
 * memory runs out, and with its parent (SIGKILL). Returns 0, or -1 with errno where one of these but Landlock
 * is refused: it may have given up some by then. Under the sanitizers there are no filter, no Landlock and no
 * bound of memory. */
int st_confine_all(const struct st_confine_bounds *bounds);

#endif
