/* The names of containers: what those who run them say (base/container.h). */
#ifndef ST_BASE_CONTAINER_NAMES_H
#define ST_BASE_CONTAINER_NAMES_H

#include "base/container.h"
#include "base/vec.h"

struct container_conmon {
    char id[ST_CONTAINER_ID + 1], name[ST_CONTAINER_NAME];
};

struct container_names {
    ST_VEC(struct container_conmon) conmons;
};

/* Lists the conmon processes of root and of this user. 0 or ST_ENOMEM. */
int container_names_open(struct container_names *names, struct st_error *err);

/* Fills name and pod of the container with that id, as far as anybody tells them. */
void container_name(const struct container_names *names, struct st_container *container);

/* Safe on a zeroed struct. */
void container_names_close(struct container_names *names);

#endif
