/* Programs whose functions have names only if somebody asks for them. */
#ifndef ST_RECORDER_CODE_RUNTIMES_H
#define ST_RECORDER_CODE_RUNTIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether a process runs a JVM or Node.js without a perf map or jitdump, or a Python whose frames cannot be
 * read (triggers/python.h): `text` says which, and what to do. False: there is nothing to do, or the process
 * cannot be looked at. */
bool rec_runtime_advice(pid_t pid, char *text, size_t size);

#endif
