/* What the fuzz targets share. */
#ifndef ST_TESTS_FUZZ_H
#define ST_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Given by the engine: changes `size` bytes at `data`, of at most `most`, and returns how many they are then.
 */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* What the code under test promises. */
static inline void fuzz_must(bool holds)
{
    if (!holds)
        abort();
}

/* A file of these bytes in memory: its descriptor, at the file's beginning. */
static inline int fuzz_file(const void *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    fuzz_must(fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    return fd;
}

/* A file of the format may hold any number anywhere: sizes and counts near an edge are worth trying. */
static inline uint64_t fuzz_edge(unsigned *seed)
{
    static const uint64_t edges[] = {0,      1,          7,          8,         0x7f,      0xff,
                                     0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};
    uint64_t edge = edges[(unsigned)rand_r(seed) % (sizeof(edges) / sizeof(edges[0]))];

    return edge + (uint64_t)(rand_r(seed) % 3) - 1;
}

/* Puts an edge, or a step from what is there, into the `width` bytes at `at`. */
static inline void fuzz_number(uint8_t *at, size_t width, unsigned *seed)
{
    uint64_t value = 0;

    memcpy(&value, at, width);
    value = rand_r(seed) % 2 ? fuzz_edge(seed) : value + (uint64_t)(rand_r(seed) % 33) - 16;
    memcpy(at, &value, width);
}

#endif
