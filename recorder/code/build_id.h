/* The build id of an ELF file. The file is foreign: it is read in small pieces and never trusted. */
#ifndef ST_RECORDER_CODE_BUILD_ID_H
#define ST_RECORDER_CODE_BUILD_ID_H

#include "base/confined.h"

#include <stddef.h>
#include <stdint.h>

#define REC_BUILD_ID_MAX 20

/* Reads the GNU build id note through the program headers of the ELF file (64 or 32 bit, little endian)
 * behind fd. Returns its length, or 0: no ELF file, no note, an id longer than REC_BUILD_ID_MAX, or anything
 * that is not as it should be. */
size_t rec_build_id_of_fd(int fd, uint8_t id[REC_BUILD_ID_MAX]);

/* The same of an ELF image in memory (a vdso). */
size_t rec_build_id_of_memory(const void *image, size_t size, uint8_t id[REC_BUILD_ID_MAX]);

/* The same, read by `child` without privilege: of the file behind fd, or, where that is -1, of the `size`
 * bytes at `image`, at most ST_CONFINED_QUESTION. Returns 0 also where the child failed, which is said. */
size_t rec_build_id_ask(struct st_confined *child, int fd, const void *image, size_t size,
                        uint8_t id[REC_BUILD_ID_MAX]);

#endif
