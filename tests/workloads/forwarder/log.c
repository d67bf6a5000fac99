/* The forwarder's log file and its clock. */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static int file_fd = -1;
static bool copy_to_stderr;

int log_open(const char *path, bool also_stderr)
{
    copy_to_stderr = also_stderr;
    if (!path)
        return 0;
    file_fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (file_fd < 0) {
        fprintf(stderr, "forwarder: cannot open the log %s: %s\n", path, strerror(errno));
        return -1;
    }
    return 0;
}

int log_fd(void)
{
    return file_fd;
}

static void write_line(int fd, const char *line, size_t length)
{
    ssize_t written;

    do
        written = write(fd, line, length);
    while (written < 0 && errno == EINTR);
}

void log_line(const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;

    va_start(args, format);
    int length = vsnprintf(line, sizeof(line) - 1, format, args);
    va_end(args);
    if (length < 0)
        return;
    if ((size_t)length > sizeof(line) - 2)
        length = sizeof(line) - 2;
    line[length++] = '\n';
    if (file_fd >= 0)
        write_line(file_fd, line, (size_t)length);
    if (copy_to_stderr)
        write_line(STDERR_FILENO, line, (size_t)length);
}

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
