/* Code from memory as an ELF file. */
#ifndef ST_RECORDER_CODE_ELF_H
#define ST_RECORDER_CODE_ELF_H

#include "base/error.h"
#include "recorder/code/perf_map.h"

#include <stdint.h>

/* Where the code begins in the file. */
#define REC_CODE_ELF_TEXT 4096

/* Writes the memory [start, end) of a process, read through `memory` (/proc/PID/mem), to the empty file `fd`:
 * a shared object with the code at offset REC_CODE_ELF_TEXT, and those of the sorted `names` that are within
 * it as symbols. What cannot be read is zero. ST_EFAIL with the reason, ST_ENOMEM. */
int rec_code_elf_write(int fd, int memory, uint64_t start, uint64_t end, const struct rec_perf_map *names,
                       struct st_error *err);

#endif
