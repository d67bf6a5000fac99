/* Names of kernel addresses, from /proc/kallsyms. */
#ifndef ST_RECORDER_CODE_KALLSYMS_H
#define ST_RECORDER_CODE_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rec_kallsyms;

/* Reads the list (100,000 lines and more: most of 100 ms). NULL when it cannot be read, memory ran out, or
 * the kernel hides the addresses from this user (kernel.kptr_restrict). */
struct rec_kallsyms *rec_kallsyms_open(const char *path);

/* Whether modules came or went since the table was read. */
bool rec_kallsyms_stale(const struct rec_kallsyms *table);

/* The symbol that holds `address`: its name ("name" or "name [module]"; owned by the table) and start. NULL
 * where none does. */
const char *rec_kallsyms_find(const struct rec_kallsyms *table, uint64_t address, uint64_t *start);

/* One more holder of the table, which may be in another thread; returns it. NULL is allowed. */
struct rec_kallsyms *rec_kallsyms_hold(struct rec_kallsyms *table);

/* The last holder frees it. NULL is allowed. */
void rec_kallsyms_close(struct rec_kallsyms *table);

#endif
