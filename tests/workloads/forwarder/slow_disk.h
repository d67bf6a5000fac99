/* A file on a disk of our own whose every fsync takes as long as we say. */
#ifndef FORWARDER_SLOW_DISK_H
#define FORWARDER_SLOW_DISK_H

#include <sys/types.h>

/* Starts a child process that serves one file over FUSE: writes are taken (and thrown away), each fsync takes
 * MS milliseconds. Needs /dev/fuse and CAP_SYS_ADMIN. Returns 0, the open file in *FD and the child in *PID
 * (the caller closes and stops both with slow_disk_stop), or -1 after a message, with nothing left behind. */
int slow_disk_start(unsigned ms, int *fd, pid_t *pid);

/* Closes the file, ends the child and waits for it. */
void slow_disk_stop(int fd, pid_t pid);

#endif
