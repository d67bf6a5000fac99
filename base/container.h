/* Containers that run: their control groups, by id or name.
 *
 * The ids are those of folders of cgroup2 as the runtimes name them: docker-ID.scope, libpod-ID.scope and
 * libpod-ID (podman), cri-containerd-ID.scope, crio-ID.scope, nerdctl-ID.scope, and ID alone below docker,
 * kubepods and the like; ID has 64 hexadecimal digits. The names are what these say, and nobody else than
 * root or this user: the command line of the container's conmon (podman, CRI-O), docker's file of it,
 * /var/lib/docker/containers/ID/config.v2.json ("Name"), and containerd's, the annotations in
 * /run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json. */
#ifndef ST_BASE_CONTAINER_H
#define ST_BASE_CONTAINER_H

#include "base/cgroup.h"
#include "base/error.h"

enum { ST_CONTAINER_ID = 64, ST_CONTAINER_NAME = 256 };

struct st_container {
    char id[ST_CONTAINER_ID + 1];

    char name[ST_CONTAINER_NAME]; /* "": not known */

    char pod[ST_CONTAINER_NAME]; /* of Kubernetes; "": none. POD/NAME is a name of it too */

    const char *path; /* of its cgroup; during the call */
};

/* Calls fn for every container that runs; not 0 ends the walk and is returned. ST_EFAIL (cgroups of version 2
 * are not mounted), ST_ENOMEM. */
typedef int st_container_fn(void *ctx, const struct st_container *container, struct st_error *err);
int st_container_each(st_container_fn *fn, void *ctx, struct st_error *err);

/* Finds the one with that id, else that name, else the only one whose id begins so. ST_EFAIL: there is none,
 * ST_EUSAGE: there are several; the message tells what was looked for, where, and what is there. */
int st_container_find(const char *text, struct st_cgroup *group, struct st_error *err);

/* The string behind "key" in the JSON object at that depth (1: the outermost one), in a text of n bytes.
 * False: there is none, it has an escape, or does not fit. */
bool st_container_json(const char *text, size_t n, int depth, const char *key, char *value, size_t size);

#endif
