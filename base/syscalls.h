/* System calls by number and by name. */
#ifndef ST_BASE_SYSCALLS_H
#define ST_BASE_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>

#define ST_SYSCALLS 512 /* no number of x86-64 is higher */

/* Writes the name ("recvfrom") of x86-64's, or with `compat` of i386's; of a number that has none "system
 * call 600" or "32-bit system call 600". Returns buf. */
const char *st_syscall_name(int number, bool compat, char *buf, size_t size);

/* The number; -1: there is none. */
int st_syscall_number(const char *name, bool compat);

/* All names of x86-64, at most `room` of them (ST_SYSCALLS is enough). They stay valid. Returns how many. */
size_t st_syscall_names(const char **out, size_t room);

#endif
