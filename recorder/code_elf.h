/* Code from memory as an ELF file. */
#ifndef ST_RECORDER_CODE_ELF_H
#define ST_RECORDER_CODE_ELF_H

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

/* Where the code begins in the file. */
#define REC_CODE_ELF_TEXT 4096

/* Writes the memory [start, end) of process `pid`, read through `memory` (/proc/PID/mem), to the empty file
 * `fd`: a shared object with the code at offset REC_CODE_ELF_TEXT, and the names that the process's
 * perf-PID.map gives it as symbols. What cannot be read is zero. ST_EFAIL with the reason, ST_ENOMEM. */
int rec_code_elf_write(int fd, pid_t pid, int memory, uint64_t start, uint64_t end, struct st_error *err);

#endif
