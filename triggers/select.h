/* Which of what happens on the CPUs is the target's. Perf events of a thread are switched in and out with it,
 * which costs 0.5 us and more each time (with a timer, more than 1 us). CPU-wide events are not; a BPF
 * program then decides which of their records are written: those of the target's threads, of processes that
 * they fork too, from the first instruction on.
 */
#ifndef ST_TRIGGERS_SELECT_H
#define ST_TRIGGERS_SELECT_H

#include "base/error.h"
#include "base/target.h"
#include "triggers/bpf/select_shared.h"
#include "triggers/select_ring.h"

#include <stdint.h>

struct trg_select;

/* What the program writes, into a bpf-output event of each CPU. */
enum trg_select_output {
    TRG_SELECT_WAITING,      /* a record each time that many context switches wait to be taken */
    TRG_SELECT_SWITCH_MARKS, /* as the tracepoint sched:sched_switch writes it, */
    TRG_SELECT_WAKE_MARKS,   /* and as sched:sched_waking does; of both as many as the pace lets */
};

/* The numbers of the two tracepoints, which their records begin with. */
struct trg_select_config {
    const struct st_target *target; /* resolved, of processes, of a name or of a cgroup */

    uint64_t switch_type, waking_type;
};

/* Loads the programs; nothing is attached. ST_ECANNOT names what this kernel or user lacks. */
int trg_select_open(const struct trg_select_config *config, struct trg_select **select, struct st_error *err);

/* Where what happens on `cpu` is written: `fd` stays the caller's. ST_EFAIL. */
int trg_select_set_output(struct trg_select *select, enum trg_select_output output, int cpu, int fd,
                          struct st_error *err);

/* Of the samples of event `fd`, those of the target's threads are kept. ST_ECANNOT, ST_EFAIL. */
int trg_select_filter(struct trg_select *select, int fd, struct st_error *err);

/* From here on records are written. ST_ECANNOT, ST_EFAIL. */
int trg_select_start(struct trg_select *select, struct st_error *err);

/* Looks for the target's threads anew: of a process of several threads that has got the target's name, the
 * programs themselves see the first one. ST_ECANNOT, ST_EFAIL. */
int trg_select_adopt(struct trg_select *select, struct st_error *err);

/* The context switches of a CPU since the last call, in memory that the next call writes anew. To be called
 * by one thread at a time. */
struct trg_select_switches trg_select_take(struct trg_select *select, int cpu);

/* How many marks are taken; until it is called, all are. */
void trg_select_set_pace(struct trg_select *select, struct select_pace pace);

/* How many threads may have marks of their own: at the most at once so far; of a cgroup, those that are in it
 * now. */
uint32_t trg_select_threads(const struct trg_select *select);

/* What was left out so far. */
struct select_left trg_select_left(const struct trg_select *select);

/* Records that could not be written, and threads that could not be watched. */
uint64_t trg_select_lost(const struct trg_select *select);

/* Ends it. NULL is allowed. */
void trg_select_close(struct trg_select *select);

#endif
