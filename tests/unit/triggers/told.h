/* For tests: what a workload noted, and what was told of it, side by side. */
#ifndef ST_TEST_TRIGGERS_TOLD_H
#define ST_TEST_TRIGGERS_TOLD_H

#include "watch.h"
#include "workload.h"

#define MS     1000000ull
#define SETTLE 150 /* ms after the workload's end in which nothing more may come */
#define BLOCKS "offcpu>20ms,state=blocked+sleeping" /* a busy machine may preempt: that is another test */

/* Waits, as long as a loaded machine takes, until the workload has noted `noted` stalls and `told` have
 * fired; then SETTLE longer, for one too many. */
void told_collect(struct watch *w, const struct workload *work, uint32_t noted, size_t told);

/* Waits until `told` have fired in `syscall` (-1: any) of process `pid` (0: any) and all that were told as
 * ongoing have ended; then SETTLE longer. */
void told_collect_of(struct watch *w, pid_t pid, int syscall, size_t told);

/* Forks the workload, watches it by `trigger`, lets it go and collects. */
void told_run(struct workload *work, workload_fn *fn, struct watch *w, const char *trigger, uint32_t noted,
              size_t told);

/* The workload noted `stalls` stalls; each fired exactly once, with its thread and its length, and nothing
 * else of the workload did. */
void told_assert_each_once(const struct workload *work, const struct watch *w, uint32_t stalls);

/* The same of stalls in system call `syscall` (-1: any). */
void told_assert_each_once_in(const struct workload *work, const struct watch *w, uint32_t stalls,
                              int syscall);

/* To be called before a figure that stall `s` noted is called wrong: ends the test as inconclusive where the
 * machine was off by more than half of the tolerance while the stall went on (control.h). told_run() and
 * spans_run() watch for it. */
void told_excuse(const struct workload_stall *s, uint64_t tolerance_ns);

/* How many fired in `syscall` (-1: any) of process `pid` (0: any). */
size_t told_fired(const struct watch *w, pid_t pid, int syscall);

bool told_has_frame(const uint64_t *stack, size_t n, const char *function);
bool told_has_address_in(const uint64_t *stack, size_t n, const void *function, size_t size);
void told_describe(const struct watch *w, const struct st_stall_record *r, char *text, size_t size);

#endif
