/* B-trees of an SQLite file, written from sorted entries: every page full, every page once.
 *
 * https://www.sqlite.org/fileformat2.html#b_tree_pages is the source of the layout. */
#ifndef ST_TRACEDB_TREE_H
#define ST_TRACEDB_TREE_H

#include "tracedb/pages.h"

#include <stdbool.h>

struct tdb_tree;

/* Starts the tree whose root is the page `root`: of an index or a table WITHOUT ROWID when `index`, else of a
 * table. The root must be empty. ST_ENOMEM. */
int tdb_tree_open(struct tdb_pages *pages, uint32_t root, bool index, struct tdb_tree **tree,
                  struct st_error *err);

/* The next entry, a record (https://www.sqlite.org/fileformat2.html#record_format): of a table with its
 * rowid, ascending; of an index with 0, in the index's order. ST_EFAIL, ST_ENOMEM; ST_EFAIL too for a record
 * of a table that does not fit in a page. */
int tdb_tree_add(struct tdb_tree *t, int64_t rowid, const uint8_t *record, size_t size, struct st_error *err);

/* Writes what is left, and the root. Frees the tree whatever happens. ST_EFAIL, ST_ENOMEM. */
int tdb_tree_close(struct tdb_tree *t, struct st_error *err);

/* Frees it. What it wrote stays in the file; the file is of no use then. NULL is allowed. */
void tdb_tree_abort(struct tdb_tree *t);

/* ---- records ---- */

enum { TDB_RECORD_COLUMNS = 12 };

/* A record of up to TDB_RECORD_COLUMNS columns with no text, built column by column. */
struct tdb_record {
    uint8_t types[TDB_RECORD_COLUMNS], values[8 * TDB_RECORD_COLUMNS + 8];

    unsigned ntypes, nvalues;
};

static inline void tdb_record_null(struct tdb_record *r)
{
    r->types[r->ntypes++] = 0;
}

static inline void tdb_record_number(struct tdb_record *r, int64_t value)
{
    static const uint8_t sizes[10] = {0, 1, 2, 3, 4, 6, 8, 0, 0, 0};
    uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
    unsigned type = magnitude >> 1 == 0 && value >= 0 ? 8 + (unsigned)value
                    : magnitude <= 0x7f               ? 1
                    : magnitude <= 0x7fff             ? 2
                    : magnitude <= 0x7fffff           ? 3
                    : magnitude <= 0x7fffffff         ? 4
                    : magnitude <= 0x7fffffffffff     ? 5
                                                      : 6;
    unsigned size = sizes[type];

    r->types[r->ntypes++] = (uint8_t)type;
    if (size) {
        uint64_t big = __builtin_bswap64((uint64_t)value << (64 - 8 * size));

        __builtin_memcpy(r->values + r->nvalues, &big, 8);
        r->nvalues += size;
    }
}

/* Where the record of r and a blob of `blob` bytes (0: none) behind it begins; puts the head and r's values
 * there. Returns their size; `to` has room for sizeof(struct tdb_record) + 16. The blob's bytes are the
 * caller's to put. */
size_t tdb_record_put(const struct tdb_record *r, size_t blob, uint8_t *to);

#endif
