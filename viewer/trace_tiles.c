/* What the timeline reads of tiles: an amount bounded by the screen; and the names behind their numbers. */
#include "base/safetext.h"
#include "viewer/trace.h"

#include <stdlib.h>
#include <string.h>

int vw_level(const struct vw_thread *thread, int64_t column_ns)
{
    int level = thread->first_level;

    if (level < 0 || column_ns < (int64_t)1 << level)
        return -1;
    while (level + TDB_LEVEL_STEP <= thread->last_level &&
           (int64_t)1 << (level + TDB_LEVEL_STEP) <= column_ns)
        level += TDB_LEVEL_STEP;
    return level;
}

struct reading {
    const struct vw_part *part;

    int depth;

    vw_block_fn *fn;

    void *ctx;
};

static int in_range(void *ctx, const struct tdb_block *b)
{
    struct reading *r = ctx;
    bool in = b->start < r->part->to && (b->start >= r->part->from || b->start + b->duration > r->part->from);

    return in ? r->fn(r->ctx, r->depth, b) : 0;
}

/* The depths of one tile's time lie side by side in the file. */
static int read_tiles(struct vw_trace *t, const struct vw_thread *thread, int64_t number,
                      struct reading *reading, struct st_error *err)
{
    sqlite3_stmt *s = t->tiles;
    int rc = 0, step = SQLITE_DONE;

    sqlite3_bind_int64(s, 1, thread->id);
    sqlite3_bind_int(s, 2, reading->part->level);
    sqlite3_bind_int64(s, 3, number);
    sqlite3_bind_int(s, 4, reading->part->depth);
    sqlite3_bind_int(s, 5, reading->part->last_depth);
    while (!rc && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(s, 1);
        size_t size = (size_t)sqlite3_column_bytes(s, 1);

        reading->depth = sqlite3_column_int(s, 0);
        if (data)
            rc = tdb_read_tile(data, size, reading->part->level, number, in_range, reading, err);
    }
    if (!rc && step != SQLITE_DONE)
        rc = vw_sql_failed(t, err);
    sqlite3_reset(s);
    return rc;
}

int vw_each_block(struct vw_trace *t, const struct vw_thread *thread, const struct vw_part *part,
                  vw_block_fn *fn, void *ctx, struct st_error *err)
{
    struct reading reading = {.part = part, .fn = fn, .ctx = ctx};
    int shift = part->level + TDB_TILE_BITS;
    int64_t last = (part->to < 0 ? 0 : part->to) >> shift;
    int rc = 0;

    for (int64_t number = (part->from < 0 ? 0 : part->from) >> shift; !rc && number <= last; number++)
        rc = read_tiles(t, thread, number, &reading, err);
    return rc;
}

static uint32_t name_hash(const char *text)
{
    uint32_t h = 2166136261u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

static void read_symbol(sqlite3_stmt *s, struct vw_symbol *symbol)
{
    const char *name = (const char *)sqlite3_column_text(s, 0),
               *module = (const char *)sqlite3_column_text(s, 1);

    st_safe_text(symbol->name, sizeof(symbol->name), name ? name : "");
    st_safe_text(symbol->module, sizeof(symbol->module), module ? module : "");
    symbol->kernel = sqlite3_column_int(s, 2) != 0;
    symbol->colour = name_hash(symbol->module);
}

const struct vw_symbol *vw_symbol(struct vw_trace *t, int64_t id)
{
    struct vw_symbol *symbol = &t->symbols[(uint64_t)id % VW_SYMBOLS];
    sqlite3_stmt *s = t->symbol;

    if (symbol->id == id && id)
        return symbol;
    memset(symbol, 0, sizeof(*symbol));
    sqlite3_bind_int64(s, 1, id);
    if (sqlite3_step(s) == SQLITE_ROW)
        read_symbol(s, symbol);
    sqlite3_reset(s);
    symbol->id = id;
    return symbol;
}
