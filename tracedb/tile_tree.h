/* The tree of tiles, by several threads at once: each makes those of a thread of the trace, and they go into
 * the tree in the order of its key. */
#ifndef ST_TRACEDB_TILE_TREE_H
#define ST_TRACEDB_TILE_TREE_H

#include "tracedb/bulk.h"
#include "tracedb/tree.h"

struct tdb_tile_tree;

/* For so many workers; tiles of a thread with more than `most` calls do not wait in memory for their turn.
 * The tree stays the caller's. ST_ENOMEM. */
int tdb_tile_tree_new(const tdb_threads *threads, struct tdb_tree *tree, unsigned workers, size_t most,
                      struct tdb_tile_tree **tiles, struct st_error *err);

/* Takes one thread of the trace after the other, until none is left. When all workers have returned from it
 * all tiles are in the tree. As tdb_build_tiles and tdb_tree_add; after a failure the others return soon. */
int tdb_tile_tree_work(struct tdb_tile_tree *tiles, struct st_error *err);

/* NULL is allowed. */
void tdb_tile_tree_free(struct tdb_tile_tree *tiles);

#endif
