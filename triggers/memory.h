/* The memory of a process that is watched: read, never trusted. */
#ifndef ST_TRIGGERS_MEMORY_H
#define ST_TRIGGERS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor of /proc/PID/mem, the caller's to close; -1: there is none, or it may not be read. Reads of it
 * fail at once where a userfaultfd of the process covers the memory, for whose service process_vm_readv(2)
 * would wait. */
int trg_memory_open(pid_t pid);

/* All of the n bytes at an address. False: they cannot be read, and `to` is undefined. */
bool trg_memory_read(int memory, uint64_t at, void *to, size_t n);

/* The address of a dynamic symbol of the 64-bit ELF image whose first page is mapped at `base`, by the GNU
 * hash table (System V ABI; sysdeps/generic/dl-hash.h). 0: the image has none of that name, or is none. */
uint64_t trg_memory_symbol(int memory, uint64_t base, const char *name);

#endif
