/* Pages of an SQLite file, written without SQLite: who gets which numbers, and the account of them in the
 * file's header.
 *
 * https://www.sqlite.org/fileformat2.html is the source of every layout here. The file has no reserved bytes
 * and no auto-vacuum, and no connection is open on it meanwhile. */
#ifndef ST_TRACEDB_PAGES_H
#define ST_TRACEDB_PAGES_H

#include "base/error.h"
#include "base/vec.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers [first, first + n). */
struct tdb_page_range {
    uint32_t first, n;
};

/* Handed to several threads at once. */
struct tdb_pages {
    int fd; /* not owned */

    const char *path; /* for messages; not owned */

    uint32_t size; /* of a page */

    uint32_t next; /* the first number that nobody has */

    ST_VEC(struct tdb_page_range) left; /* numbers that were taken and not used */

    pthread_mutex_t lock;
};

/* Reads page size and count from the header of the file. ST_EFAIL: it cannot be read, or is no such file. */
int tdb_pages_open(struct tdb_pages *p, int fd, const char *path, struct st_error *err);

/* Writes how many pages there are now, and which of them are free. ST_EFAIL. */
int tdb_pages_close(struct tdb_pages *p, struct st_error *err);

/* Frees what tdb_pages_open made; the file stays as it is. */
void tdb_pages_free(struct tdb_pages *p);

/* Numbers for up to `wanted` pages in a row. One of them may be that of the page that SQLite locks by, which
 * stays unused. ST_EFAIL: the file has no number left. */
int tdb_pages_take(struct tdb_pages *p, uint32_t wanted, struct tdb_page_range *range, struct st_error *err);

/* The same, at the end of the file: all that are wanted. */
int tdb_pages_take_new(struct tdb_pages *p, uint32_t wanted, struct tdb_page_range *range,
                       struct st_error *err);

/* Gives back what was not used. ST_ENOMEM. */
int tdb_pages_give(struct tdb_pages *p, struct tdb_page_range range, struct st_error *err);

/* The page that holds the byte SQLite locks by; it is no part of any tree. */
uint32_t tdb_pages_locked(const struct tdb_pages *p);

/* Writes n pages in a row from number `first` on. ST_EFAIL. */
int tdb_pages_write(const struct tdb_pages *p, uint32_t first, const uint8_t *data, size_t n,
                    struct st_error *err);

static inline void tdb_put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void tdb_put32(uint8_t *at, uint32_t value)
{
    tdb_put16(at, value >> 16);
    tdb_put16(at + 2, value & 0xffff);
}

static inline uint32_t tdb_get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

#endif
