/* For tests: watches processes with a trigger and collects the records from the bpf-output rings, as the
 * recorder does. */
#ifndef ST_TEST_TRIGGERS_WATCH_H
#define ST_TEST_TRIGGERS_WATCH_H

#include "base/vec.h"
#include "triggers/trigger.h"

#include <stdbool.h>
#include <sys/types.h>

#define WATCH_CPUS 64

/* At the beginning of a test that arms triggers; needs cmocka.h. */
#define NEEDS_BPF()                                                                                          \
    do {                                                                                                     \
        if (!watch_possible())                                                                               \
            skip();                                                                                          \
    } while (0)

struct watch_record {
    uint64_t sample_time; /* perf clock ns */

    uint32_t sample_tid;

    struct st_stall_record r;
};

struct watch {
    struct trg_set *set;

    struct st_target target;

    int cpus;

    int fd[WATCH_CPUS];

    void *ring[WATCH_CPUS];

    uint64_t lost; /* PERF_RECORD_LOST */

    ST_VEC(struct watch_record) records;
};

/* Says what lacks and returns false where BPF triggers cannot run (no root, no BTF). */
bool watch_possible(void);

/* Arms `text` for the processes pids[0..n). With n 0 and cgroup NULL: for all. Any failure fails the test. */
void watch_start(struct watch *w, const char *text, const pid_t *pids, size_t n, const char *cgroup,
                 const struct trg_config *more);

/* Two triggers at once, for all processes. */
void watch_start_both(struct watch *w, const char *first, const char *second);

/* Collects records until there are `enough` or `ms` have passed. Completes ongoing ones (trg_complete). */
void watch_collect(struct watch *w, size_t enough, int ms);

/* Checks that nothing was lost; frees everything. */
void watch_stop(struct watch *w);

/* Frees everything. */
void watch_close(struct watch *w);

/* Records of thread tid (0: any) that have all of `with` and none of `without` in their flags. */
size_t watch_count(const struct watch *w, pid_t tid, uint32_t with, uint32_t without);

/* The first such record; fails the test when there is none. */
const struct st_stall_record *watch_first(const struct watch *w, pid_t tid, uint32_t with, uint32_t without);

/* Name of the kernel function an address is in ("?": none). */
const char *watch_ksym(void *unused, uint64_t address);

#endif
