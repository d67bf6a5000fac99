/* Ready-made answers. */
#ifndef ST_VIEWER_REPORT_H
#define ST_VIEWER_REPORT_H

#include "base/error.h"
#include "viewer/format.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

/* Tells the stall `id` (0: the one that fired the snapshot, else the longest) in a dozen lines: who, how
 * long, where, who woke it, where the time went, the likely cause with its evidence, and the last calls
 * before. With no stall at all it says so and what the trace holds. ST_EFAIL: SQLite's message, or no stall
 * of that id. */
int vw_report_why(sqlite3 *db, int64_t id, FILE *out, struct st_error *err);

/* Prints a line if the CPU that the thread got slept in a C-state when the thread was woken, of a stall whose
 * parts are made (viewer/parts.h): how long after that it was awake, by marks `asleep` and `awake`. ST_EFAIL.
 */
int vw_print_cpu_sleep(sqlite3 *db, int64_t thread_id, FILE *out, struct st_error *err);

/* Prints where stall `id` was recorded, a line each: wall-clock time, host and kernel; the program's command
 * line and build id; source, period and the history's length. What the trace does not say has no line.
 * ST_EFAIL. */
int vw_print_origin(sqlite3 *db, int64_t id, FILE *out, struct st_error *err);

/* Safe to print; name "" : not known. */
struct vw_cause {
    char name[256], evidence[1024];
};

/* The cause of stall `id`; the parts must be made (viewer/parts.h). ST_EFAIL: a rule failed. */
int vw_find_cause(sqlite3 *db, int64_t id, struct vw_cause *cause, struct st_error *err);

/* KIND|CAUSE|WAKER|PATH of stall `id`, coarse to fine, to find stalls that are alike: the same on every host
 * and in every build where the same is known. WAKER is thread, softirq NAME, interrupt ... and "-" where the
 * stall was no wait. PATH are up to three functions outside of the C library, the innermost first, without
 * addresses and what compilers put behind names; "-": none is known. The parts must be made. Safe to print.
 * ST_EFAIL. */
int vw_fingerprint(sqlite3 *db, int64_t id, const struct vw_cause *cause, char *text, size_t size,
                   struct st_error *err);

/* Groups the traces of a folder (its files *.db) by fingerprint: how often, first, last, worst, which one to
 * open. A trace that cannot be read is told on stderr and left out. `limit` 0: all groups. ST_EFAIL: the
 * folder cannot be read, or holds no trace. */
int vw_report_folder(const char *folder, enum vw_format format, long limit, FILE *out, struct st_error *err);

/* Sets *id to the stall that fired the snapshot, else the longest, where it is 0; 0 stays where there is
 * none. ST_EFAIL. */
int vw_find_stall(sqlite3 *db, int64_t *id, struct st_error *err);

#endif
