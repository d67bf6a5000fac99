/* The processes of the target. */
#include "recorder/sideband/pid_set.h"
#include "recorder/perf/record.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Where it is, or would be. */
static size_t place_of(const rec_pid_set *set, pid_t pid)
{
    size_t low = 0, high = set->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (set->at[middle] < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool rec_pid_set_has(const rec_pid_set *set, pid_t pid)
{
    size_t at = place_of(set, pid);

    return at < set->n && set->at[at] == pid;
}

int rec_pid_set_add(rec_pid_set *set, pid_t pid)
{
    size_t at = place_of(set, pid);

    if (at < set->n && set->at[at] == pid)
        return 0;
    if (st_vec_reserve(set, 1))
        return -1;
    memmove(&set->at[at + 1], &set->at[at], (set->n++ - at) * sizeof(set->at[0]));
    set->at[at] = pid;
    return 0;
}

void rec_pid_set_remove(rec_pid_set *set, pid_t pid)
{
    size_t at = place_of(set, pid);

    if (at < set->n && set->at[at] == pid)
        memmove(&set->at[at], &set->at[at + 1], (--set->n - at) * sizeof(set->at[0]));
}

static int fork_record(rec_pid_set *set, const struct rec_task_record *r)
{
    pid_t pid = (pid_t)r->pid, parent = (pid_t)r->ppid;

    if (pid != parent && !rec_pid_set_has(set, parent))
        rec_pid_set_remove(set, pid);
    else if (pid != parent && rec_pid_set_add(set, pid))
        return -1;
    return rec_pid_set_has(set, pid);
}

int rec_pid_set_takes(rec_pid_set *set, const struct perf_event_header *record)
{
    switch (record->type) {
    case PERF_RECORD_FORK:
        return fork_record(set, (const struct rec_task_record *)record);
    case PERF_RECORD_EXIT:
    case PERF_RECORD_COMM:
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2: /* all begin with the process */
        return rec_pid_set_has(set, (pid_t)((const struct rec_comm_record *)record)->pid);
    default:
        return true;
    }
}
