/* The folder of this user's control sockets. */
#ifndef ST_RECORDER_ARM_CONTROL_FOLDER_H
#define ST_RECORDER_ARM_CONTROL_FOLDER_H

#include "base/error.h"

#include <stddef.h>

/* Puts its name into `path` and makes it where it is not there. ST_EFAIL when it cannot be made or is not
 * ours alone. */
int rec_control_own_folder(char *path, size_t size, struct st_error *err);

/* Removes the sockets of this user in that folder whose arms were killed. */
void rec_control_sweep(const char *folder);

#endif
