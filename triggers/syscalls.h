/* System calls of x86-64 by number and by name. */
#ifndef ST_TRIGGERS_SYSCALLS_H
#define ST_TRIGGERS_SYSCALLS_H

#include <stddef.h>

#define TRG_SYSCALLS 512 /* no number is higher */

/* "recvfrom", or NULL for a number that no system call has (or one newer than this table). */
const char *trg_syscall_name(int number);

/* The number, or -1. */
int trg_syscall_number(const char *name);

/* All names, at most `room` of them (TRG_SYSCALLS is enough). Returns how many. */
size_t trg_syscall_names(const char **out, size_t room);

#endif
