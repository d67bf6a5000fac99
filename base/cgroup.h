/* Control groups (version 2): from what a user writes to a folder, and who is in it. */
#ifndef ST_BASE_CGROUP_H
#define ST_BASE_CGROUP_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A group that was found. */
struct st_cgroup {
    char *path; /* of its folder; owned (st_cgroup_free) */

    uint64_t id; /* as bpf_get_current_cgroup_id() gives it: the folder's inode (kernel/cgroup/cgroup.c) */
};

/* Finds the group that `text` names: a folder below a mount of version 2, or a path within that hierarchy, as
 * /proc/PID/cgroup writes it behind "0::". ST_EFAIL: there is none, or version 2 is not mounted; ST_EUSAGE:
 * it is one of version 1 (the message names the group of version 2 that is the same, where there is one), or
 * a threaded one, which holds no processes. ST_ENOMEM. */
int st_cgroup_find(const char *text, struct st_cgroup *group, struct st_error *err);

/* Where version 2 is mounted: 0, or -1 when it is not. */
int st_cgroup_mount(char *path, size_t size);

/* Whether the group is still there; one that was removed and made anew under the same name is another. */
bool st_cgroup_exists(const struct st_cgroup *group);

/* Calls fn for every process in the group and in those below it. One that moves meanwhile may come twice or
 * not at all. Returns 0, what fn returned if that was not 0, ST_EFAIL (the group cannot be read), ST_ENOMEM.
 * A group below that goes meanwhile is no error. */
typedef int st_cgroup_process_fn(void *ctx, pid_t pid, struct st_error *err);
int st_cgroup_each(const struct st_cgroup *group, st_cgroup_process_fn *fn, void *ctx, struct st_error *err);

/* Safe on a zeroed struct. */
void st_cgroup_free(struct st_cgroup *group);

#endif
