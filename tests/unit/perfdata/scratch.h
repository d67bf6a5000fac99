/* A folder of a test's own, and whole files in memory. */
#ifndef ST_TEST_SCRATCH_H
#define ST_TEST_SCRATCH_H

#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of a file. Initialise with {0}; st_vec_free() it. */
struct file {
    ST_VEC(uint8_t) bytes;
};

/* cmocka setup and teardown: *state is the path of a new, empty folder; it is removed with all in it. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

/* FOLDER/NAME in one of eight static buffers. */
const char *scratch_path(void **state, const char *name);

/* The number of entries of a folder, without "." and "..". */
size_t scratch_entries(const char *folder);

/* These fail the test when they cannot. */
void file_read(struct file *file, const char *path);
void file_write(const char *path, const void *data, size_t n);
void file_add(struct file *file, const void *data, size_t n);

#endif
