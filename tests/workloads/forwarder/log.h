/* The forwarder's log: one line a write, so that a reader never sees half a line. */
#ifndef FORWARDER_LOG_H
#define FORWARDER_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* Opens PATH (NULL: no file) for appending, truncated first; also_stderr copies each line to stderr.
 * It stays open to the end of the process, as threads may log until then.
 * Returns 0, or -1 after a message on stderr that names the file and the reason. */
int log_open(const char *path, bool also_stderr);

/* The log's descriptor, or -1; the log keeps it. */
int log_fd(void);

/* Writes one line (a newline is added; a line over 1023 bytes is cut). Safe in every thread. */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t now_ns(void);

#endif
