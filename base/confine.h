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
 * them, give no memory that is code. Takes no memory. Needs no_new_privs. Returns 0, or -1 with errno where
 * the kernel has no such filters or `n` is too large. */
enum { ST_CONFINE_MOST = 64 };
int st_confine_calls(const int *calls, size_t n);

#endif
