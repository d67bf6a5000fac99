/* A child process that keeps a disk busy with direct writes to one file, on request. */
#ifndef FORWARDER_DISK_WRITER_H
#define FORWARDER_DISK_WRITER_H

#include <sys/types.h>

/* One direct write; big, so that the disk's queue holds a whole stall of them. */
#define DISK_WRITE_BYTES (4u << 20)

/* The file: one page the writer leaves alone, and from DISK_WRITE_BYTES on so many writes side by side; more
 * writes than that begin again at the front. The page comes first as a disk scheduler that sorts sweeps
 * upwards and then begins again at the oldest request. */
#define DISK_FILE_WRITES 16

/* How many can be queued at once. */
#define DISK_WRITES_MAX 192

struct disk_writer {
    pid_t pid;
    int socket;

    /* the file; the child has it too and closes it last, as the end of a deleted file takes its time */
    int fd;
};

/* Makes a file in DIR (deleted at once, every block written once) and starts the child "disk-writer". The
 * child and not a thread: what it waits for is not to be seen in the forwarder. Returns 0, or -1 with errno
 * set and nothing left behind. */
int disk_writer_start(struct disk_writer *writer, const char *dir);

/* Queues COUNT writes; when it returns they stand in the disk's queue. It waits in poll(). Returns how many
 * there are, or -1 with errno set. */
int disk_writer_queue(const struct disk_writer *writer, unsigned count);

/* Waits in poll() until the queued writes are done. Returns how many were done already, or -1 with errno set.
 */
int disk_writer_reap(const struct disk_writer *writer);

/* Closes the file, ends the child and waits for it. */
void disk_writer_stop(struct disk_writer *writer);

#endif
