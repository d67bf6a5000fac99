/* Who is watched: -p, --comm, --cgroup, -a, or a command. */
#ifndef ST_BASE_TARGET_H
#define ST_BASE_TARGET_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum st_target_kind {
    ST_TARGET_NONE,
    ST_TARGET_PIDS,
    ST_TARGET_COMM,
    ST_TARGET_CGROUP,
    ST_TARGET_ALL,
    ST_TARGET_COMMAND,
};

/* pids is owned by the struct (st_target_free); the strings and argv point into the command line. */
struct st_target {
    enum st_target_kind kind;

    pid_t *pids; /* process ids; filled by st_target_resolve for every kind but ALL and COMMAND */

    size_t npids;

    const char *comm;

    const char *cgroup; /* a path in the cgroup v2 file system, absolute or below its mount point */

    uint64_t cgroup_id; /* as bpf_get_current_cgroup_id() gives it; filled by st_target_resolve */

    char **argv; /* ST_TARGET_COMMAND; NULL-terminated */
};

/* Option callbacks (st_opt_fn; `to` is a struct st_target *). Two kinds at once are ST_EUSAGE; -p may be
 * repeated, and takes process ids with commas or blanks between them, as pidof(1) prints them. */
int st_target_add_pids(void *to, const char *text, struct st_error *err);
int st_target_set_comm(void *to, const char *text, struct st_error *err);
int st_target_set_cgroup(void *to, const char *text, struct st_error *err);
int st_target_set_all(void *to, const char *unused, struct st_error *err);

/* Takes the operands from `first` on as more process ids behind -p: the shell makes them of `-p $(pidof
 * NAME)`. ST_EUSAGE for any other word, and for a target of another kind. */
int st_target_more_pids(struct st_target *t, int argc, char **argv, int first, struct st_error *err);

/* Takes the operands behind "--" as the command. */
int st_target_set_command(struct st_target *t, char **argv, struct st_error *err);

/* Finds the processes: checks that each pid exists (a tid is turned into its process), looks up --comm and
 * --cgroup. ST_EFAIL when there is none: the message names what was looked for and near names where there are
 * any. */
int st_target_resolve(struct st_target *t, struct st_error *err);

/* The threads of a process, from /proc/PID/task, as a malloc'd array the caller frees. Returns how many, 0
 * when the process has ended, or ST_EFAIL (they cannot be listed), ST_ENOMEM. */
int st_target_threads(pid_t pid, pid_t **tids, struct st_error *err);

void st_target_free(struct st_target *t);

#endif
