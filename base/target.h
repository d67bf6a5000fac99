/* Who is watched: -p, --comm, --cgroup, --container, -a, or a command. */
#ifndef ST_BASE_TARGET_H
#define ST_BASE_TARGET_H

#include "base/cgroup.h"
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

    size_t npids, room;

    const char *comm;

    char near[64]; /* a name like it that some process has, where none has it; "": there is none */

    const char *cgroup, *container; /* as it was named; one of them is NULL */

    struct st_cgroup group; /* found by st_target_resolve */

    char **argv; /* ST_TARGET_COMMAND; NULL-terminated */
};

/* Whether processes come into the target that nobody in it made: those of a name, or of a cgroup. There may
 * be none at first, and when the last has ended others may come. */
bool st_target_waits(const struct st_target *target);

/* Option callbacks (st_opt_fn; `to` is a struct st_target *). Two kinds at once are ST_EUSAGE; -p may be
 * repeated, and takes process ids with commas or blanks between them, as pidof(1) prints them. */
int st_target_add_pids(void *to, const char *text, struct st_error *err);
int st_target_set_comm(void *to, const char *text, struct st_error *err);
int st_target_set_cgroup(void *to, const char *text, struct st_error *err);
int st_target_set_container(void *to, const char *text, struct st_error *err); /* as a cgroup */
int st_target_set_all(void *to, const char *unused, struct st_error *err);

/* Takes the operands from `first` on as more process ids behind -p: the shell makes them of `-p $(pidof
 * NAME)`. ST_EUSAGE for any other word, and for a target of another kind. */
int st_target_more_pids(struct st_target *t, int argc, char **argv, int first, struct st_error *err);

/* Takes the operands behind "--" as the command. */
int st_target_set_command(struct st_target *t, char **argv, struct st_error *err);

/* Finds the processes: checks that each pid exists (a tid is turned into its process), looks up --comm and
 * --cgroup, where there may be none. ST_EFAIL: there is no such process, or no such cgroup; ST_EUSAGE: a name
 * that no process can have, a cgroup that is none of processes. */
int st_target_resolve(struct st_target *t, struct st_error *err);

/* The processes that are of the target now, of one that waits (st_target_waits): calls fn for each; what it
 * returns, if not 0, ends the walk. Returns that, 0, or as st_target_resolve. This process is none of them.
 */
int st_target_each(const struct st_target *t, st_cgroup_process_fn *fn, void *ctx, struct st_error *err);

/* A process has come into the target, or has ended. 0 or ST_ENOMEM. */
int st_target_add(struct st_target *t, pid_t pid, struct st_error *err);
void st_target_remove(struct st_target *t, pid_t pid);

/* The threads of a process, from /proc/PID/task, as a malloc'd array the caller frees. Returns how many, 0
 * when the process has ended, or ST_EFAIL (they cannot be listed), ST_ENOMEM. */
int st_target_threads(pid_t pid, pid_t **tids, struct st_error *err);

/* Whether the process has several threads now. */
bool st_target_has_threads(pid_t pid);

/* The parent of a process; 0: it has none here, or has ended. */
pid_t st_target_parent(pid_t pid);

/* Calls fn for each child of the process, as st_target_each does. A process that has ended has none. */
int st_target_children(pid_t pid, st_cgroup_process_fn *fn, void *ctx, struct st_error *err);

void st_target_free(struct st_target *t);

#endif
