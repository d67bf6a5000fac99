/* Builds and reads tiles: calls of every length at every zoom, short ones counted by bucket. */
#include "tracedb/tiles.h"
#include "base/vec.h"
#include "tracedb/tracedb.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 1000,
    LEAST_LEVEL = 2,
    MOST_LEVELS = 24,
    SPECIAL_ROWS = 2, /* TDB_DEPTH_OFFCPU and TDB_DEPTH_SLICE */
};

/* Short calls of one bucket. */
struct dense {
    int64_t bucket, calls, busy, symbol, weight;
};

/* One level of one depth: the tile that is being filled. */
struct row {
    int64_t tile; /* number; -1: none */

    int64_t last_bucket;

    struct dense dense; /* not yet in `data`; calls is 0 when there is none */

    ST_VEC(uint8_t) data;
};

/* One function's row of `function_summary`. */
struct function {
    int64_t calls, total, self, least, most;
};

struct builder {
    sqlite3 *db;

    sqlite3_stmt *insert;

    int64_t thread;

    int first_level, levels;

    ST_VEC(struct row) rows; /* [(depth + SPECIAL_ROWS) * levels + level] */

    int64_t calls, depths, start, end; /* of the thread */

    ST_VEC(struct function) functions; /* by symbol_id */

    struct st_error *err;
};

static int failed(struct builder *b)
{
    return st_fail(b->err, ST_EFAIL, "cannot build the summaries: %s", sqlite3_errmsg(b->db));
}

static int put(struct builder *b, struct row *r, uint64_t value)
{
    if (st_vec_reserve(&r->data, 10))
        return st_nomem(b->err, "the summaries");
    for (; value > 0x7f; value >>= 7)
        r->data.at[r->data.n++] = (uint8_t)(value | 0x80);
    r->data.at[r->data.n++] = (uint8_t)value;
    return 0;
}

/* A block begins with how many buckets it is behind the one before it, and whether it is dense. */
static int put_head(struct builder *b, struct row *r, int64_t bucket, bool dense)
{
    int64_t before = r->data.n ? r->last_bucket : r->tile << TDB_TILE_BITS;

    r->last_bucket = bucket;
    return put(b, r, (uint64_t)(bucket - before) << 1 | dense);
}

static int flush_dense(struct builder *b, struct row *r)
{
    struct dense d = r->dense;
    int rc;

    if (!d.calls)
        return 0;
    r->dense.calls = 0;
    rc = put_head(b, r, d.bucket, true);
    if (!rc)
        rc = put(b, r, (uint64_t)d.calls);
    if (!rc)
        rc = put(b, r, (uint64_t)d.busy);
    return rc ? rc : put(b, r, (uint64_t)d.symbol);
}

static int flush_tile(struct builder *b, size_t index)
{
    struct row *r = &b->rows.at[index];
    int rc = flush_dense(b, r);

    if (rc || !r->data.n)
        return rc;
    sqlite3_bind_int64(b->insert, 1, b->thread);
    sqlite3_bind_int(b->insert, 2, b->first_level + (int)(index % (size_t)b->levels) * TDB_LEVEL_STEP);
    sqlite3_bind_int(b->insert, 3, (int)(index / (size_t)b->levels) - SPECIAL_ROWS);
    sqlite3_bind_int64(b->insert, 4, r->tile);
    sqlite3_bind_blob64(b->insert, 5, r->data.at, r->data.n, SQLITE_STATIC);
    if (sqlite3_step(b->insert) != SQLITE_DONE)
        rc = failed(b);
    sqlite3_reset(b->insert);
    r->data.n = 0;
    return rc;
}

/* The function that took most of a bucket: the majority vote of Boyer and Moore, weighed by time. */
static void vote(struct dense *d, int64_t symbol, int64_t ns)
{
    ns = ns ? ns : 1;
    if (symbol == d->symbol) {
        d->weight += ns;
    } else if (ns > d->weight) {
        d->symbol = symbol;
        d->weight = ns - d->weight;
    } else {
        d->weight -= ns;
    }
}

static int add_dense(struct builder *b, struct row *r, int64_t bucket, const struct tdb_block *c)
{
    if (r->dense.calls && r->dense.bucket != bucket) {
        int rc = flush_dense(b, r);

        if (rc)
            return rc;
    }
    if (!r->dense.calls)
        r->dense = (struct dense){.bucket = bucket};
    r->dense.calls++;
    r->dense.busy += c->duration;
    vote(&r->dense, c->symbol_id, c->duration);
    return 0;
}

static int add_single(struct builder *b, struct row *r, int64_t bucket, int level, const struct tdb_block *c)
{
    int rc = flush_dense(b, r);

    if (!rc)
        rc = put_head(b, r, bucket, false);
    if (!rc)
        rc = put(b, r, (uint64_t)(c->start - (bucket << level)));
    if (!rc)
        rc = put(b, r, (uint64_t)c->duration);
    if (!rc)
        rc = put(b, r, (uint64_t)c->symbol_id);
    if (!rc)
        rc = put(b, r, (uint64_t)c->id);
    return rc ? rc : put(b, r, c->flags);
}

static int make_rows(struct builder *b, int depth)
{
    size_t wanted = (size_t)(depth + SPECIAL_ROWS + 1) * (size_t)b->levels;

    if (wanted > b->rows.n && st_vec_reserve(&b->rows, wanted - b->rows.n))
        return st_nomem(b->err, "the summaries");
    while (b->rows.n < wanted)
        b->rows.at[b->rows.n++] = (struct row){.tile = -1};
    return 0;
}

/* Puts a call or span into every level of its depth. */
static int add(struct builder *b, int depth, const struct tdb_block *c)
{
    int rc = make_rows(b, depth);

    for (int i = 0; !rc && i < b->levels; i++) {
        int level = b->first_level + i * TDB_LEVEL_STEP;
        size_t index = (size_t)(depth + SPECIAL_ROWS) * (size_t)b->levels + (size_t)i;
        struct row *r = &b->rows.at[index];
        int64_t bucket = c->start >> level;

        if (r->tile != bucket >> TDB_TILE_BITS) {
            rc = flush_tile(b, index);
            r->tile = bucket >> TDB_TILE_BITS;
        }
        if (!rc)
            rc = c->duration >> level ? add_single(b, r, bucket, level, c) : add_dense(b, r, bucket, c);
    }
    return rc;
}

/* One number, or `otherwise` where there is none. */
static int number(struct builder *b, const char *sql, int64_t a, int64_t otherwise, int64_t *value)
{
    sqlite3_stmt *stmt;
    int step;

    if (sqlite3_prepare_v2(b->db, sql, -1, &stmt, NULL))
        return failed(b);
    sqlite3_bind_int64(stmt, 1, a);
    if (sqlite3_bind_parameter_count(stmt) > 1)
        sqlite3_bind_int64(stmt, 2, b->thread);
    step = sqlite3_step(stmt);
    *value = step == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL ? sqlite3_column_int64(stmt, 0)
                                                                               : otherwise;
    sqlite3_finalize(stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? 0 : failed(b);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The finest level: a quarter of the thread's calls are shorter than its bucket. Finer zooms show few enough
 * calls to be read one by one. Sampled evenly over the thread's ids. */
static int choose_level(struct builder *b, int64_t first, int64_t last)
{
    static const char sql[] = "SELECT duration_ns FROM call WHERE id >= ?1 ORDER BY id LIMIT 1";
    int64_t samples[SAMPLES];
    int n = 0, rc = 0;

    for (int i = 0; !rc && i < SAMPLES; i++)
        rc = number(b, sql, first + (int64_t)((double)(last - first) * i / SAMPLES), 0, &samples[n++]);
    if (rc)
        return rc;
    qsort(samples, (size_t)n, sizeof(samples[0]), by_value);
    b->first_level = LEAST_LEVEL;
    while (b->first_level < 60 && samples[n / 4] >> b->first_level)
        b->first_level += TDB_LEVEL_STEP;
    return 0;
}

/* Levels up to the one whose tile holds the whole trace. */
static int choose_levels(struct builder *b, int64_t trace_end)
{
    int64_t first = 0, last = 0;
    int rc = number(b, "SELECT id FROM call WHERE thread_id = ?2 AND ?1 = 0 ORDER BY start_ns, id LIMIT 1", 0,
                    0, &first);

    if (!rc)
        rc = number(
            b, "SELECT id FROM call WHERE thread_id = ?2 AND ?1 = 0 ORDER BY start_ns DESC, id DESC LIMIT 1",
            0, 0, &last);
    b->first_level = 12; /* threads of which only the scheduling is known */
    if (!rc && first)
        rc = choose_level(b, first, last);
    b->levels = 1;
    while (b->levels < MOST_LEVELS &&
           trace_end >> (b->first_level + (b->levels - 1) * TDB_LEVEL_STEP + TDB_TILE_BITS - 1))
        b->levels++;
    return rc;
}

/* What the builder reads. Columns: depth, start, duration, symbol, id, flags, self. */
static const char *const sources[] = {
    "SELECT depth, start_ns, duration_ns, symbol_id, id, flags, self_ns FROM call WHERE thread_id = ?1 ORDER "
    "BY "
    "start_ns, id",
    "SELECT -1, start_ns, end_ns - start_ns, 0, id, preempted, 0 FROM offcpu WHERE thread_id = ?1 ORDER BY "
    "start_ns, id",
    "SELECT -2, start_ns, end_ns - start_ns, 0, id, 0, 0 FROM slice WHERE thread_id = ?1 ORDER BY start_ns, "
    "id",
};

static int count_function(struct builder *b, const struct tdb_block *c, int64_t self)
{
    size_t wanted = (size_t)c->symbol_id + 1;
    struct function *f;

    if (wanted > b->functions.n && st_vec_reserve(&b->functions, wanted - b->functions.n))
        return st_nomem(b->err, "the summaries");
    while (b->functions.n < wanted)
        b->functions.at[b->functions.n++] = (struct function){.least = INT64_MAX};
    f = &b->functions.at[c->symbol_id];
    f->calls++;
    f->self += self;
    f->total += c->flags & TDB_CALL_RECURSIVE ? 0 : c->duration;
    f->least = c->duration < f->least ? c->duration : f->least;
    f->most = c->duration > f->most ? c->duration : f->most;
    return 0;
}

static int add_row(struct builder *b, sqlite3_stmt *stmt, bool with_tiles)
{
    struct tdb_block c = {.start = sqlite3_column_int64(stmt, 1),
                          .duration = sqlite3_column_int64(stmt, 2),
                          .symbol_id = sqlite3_column_int64(stmt, 3),
                          .id = sqlite3_column_int64(stmt, 4),
                          .flags = (uint32_t)sqlite3_column_int64(stmt, 5)};
    int depth = sqlite3_column_int(stmt, 0), rc = 0;

    c.start = c.start < 0 ? 0 : c.start;
    c.duration = c.duration < 0 ? 0 : c.duration;
    if (depth >= 0) {
        b->calls++;
        b->depths = depth >= b->depths ? depth + 1 : b->depths;
        rc = count_function(b, &c, sqlite3_column_int64(stmt, 6));
    }
    if (b->start < 0 || c.start < b->start)
        b->start = c.start;
    if (c.start + c.duration > b->end)
        b->end = c.start + c.duration;
    return with_tiles && !rc ? add(b, depth < -SPECIAL_ROWS ? 0 : depth, &c) : rc;
}

static int add_source(struct builder *b, const char *sql, bool with_tiles)
{
    sqlite3_stmt *stmt;
    int rc = 0, step = SQLITE_DONE;

    if (sqlite3_prepare_v2(b->db, sql, -1, &stmt, NULL))
        return failed(b);
    sqlite3_bind_int64(stmt, 1, b->thread);
    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = add_row(b, stmt, with_tiles);
    if (!rc && step != SQLITE_DONE)
        rc = failed(b);
    sqlite3_finalize(stmt);
    return rc;
}

static void free_rows(struct builder *b)
{
    for (size_t i = 0; i < b->rows.n; i++)
        st_vec_free(&b->rows.at[i].data);
    st_vec_free(&b->rows);
}

static int put_summary(struct builder *b, bool with_tiles)
{
    static const char sql[] = "INSERT INTO summary VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    sqlite3_stmt *stmt;
    int rc = 0;

    if (sqlite3_prepare_v2(b->db, sql, -1, &stmt, NULL))
        return failed(b);
    sqlite3_bind_int64(stmt, 1, b->thread);
    sqlite3_bind_int64(stmt, 2, b->calls);
    sqlite3_bind_int64(stmt, 3, b->depths);
    if (b->start >= 0) {
        sqlite3_bind_int64(stmt, 4, b->start);
        sqlite3_bind_int64(stmt, 5, b->end);
    }
    if (with_tiles) {
        sqlite3_bind_int(stmt, 6, b->first_level);
        sqlite3_bind_int(stmt, 7, b->first_level + (b->levels - 1) * TDB_LEVEL_STEP);
    }
    if (sqlite3_step(stmt) != SQLITE_DONE)
        rc = failed(b);
    sqlite3_finalize(stmt);
    return rc;
}

static int build_thread(struct builder *b, int64_t trace_end)
{
    int64_t many = 0;
    bool with_tiles;
    int rc = number(b,
                    "SELECT (SELECT count(*) FROM (SELECT 1 FROM call WHERE thread_id = ?2 LIMIT ?1)) + "
                    "(SELECT count(*) FROM "
                    "(SELECT 1 FROM slice WHERE thread_id = ?2 LIMIT ?1))",
                    TDB_TILE_CALLS, 0, &many);

    b->calls = b->depths = b->end = 0;
    b->start = -1;
    with_tiles = many >= TDB_TILE_CALLS;
    if (!rc && with_tiles)
        rc = choose_levels(b, trace_end);
    for (size_t i = 0; !rc && i < sizeof(sources) / sizeof(sources[0]); i++)
        rc = add_source(b, sources[i], with_tiles);
    for (size_t i = 0; !rc && i < b->rows.n; i++)
        rc = flush_tile(b, i);
    free_rows(b);
    return rc ? rc : put_summary(b, with_tiles);
}

static int build_threads(struct builder *b)
{
    static const char end_sql[] = "SELECT max(t) FROM (SELECT (SELECT start_ns FROM call WHERE thread_id = "
                                  "thread.id ORDER BY start_ns DESC LIMIT 1) AS t "
                                  "FROM thread UNION ALL SELECT (SELECT end_ns FROM slice WHERE thread_id = "
                                  "thread.id ORDER BY start_ns DESC LIMIT 1) "
                                  "FROM thread) WHERE ?1 = 0 AND ?2 IS NOT NULL";
    sqlite3_stmt *threads;
    int64_t trace_end = 0;
    int rc = number(b, end_sql, 0, 0, &trace_end), step = SQLITE_DONE;

    if (rc)
        return rc;
    if (sqlite3_prepare_v2(b->db, "SELECT id FROM thread ORDER BY id", -1, &threads, NULL))
        return failed(b);
    while (!rc && (step = sqlite3_step(threads)) == SQLITE_ROW) {
        b->thread = sqlite3_column_int64(threads, 0);
        rc = build_thread(b, trace_end);
    }
    if (!rc && step != SQLITE_DONE)
        rc = failed(b);
    sqlite3_finalize(threads);
    return rc;
}

static int put_functions(struct builder *b)
{
    sqlite3_stmt *stmt;
    int rc = 0;

    if (sqlite3_prepare_v2(b->db, "INSERT INTO function_summary VALUES (?1, ?2, ?3, ?4, ?5, ?6)", -1, &stmt,
                           NULL))
        return failed(b);
    for (size_t i = 0; !rc && i < b->functions.n; i++) {
        const struct function *f = &b->functions.at[i];
        const int64_t values[] = {(int64_t)i, f->calls, f->total, f->self, f->least, f->most};

        if (!f->calls)
            continue;
        for (int k = 0; k < 6; k++)
            sqlite3_bind_int64(stmt, k + 1, values[k]);
        if (sqlite3_step(stmt) != SQLITE_DONE)
            rc = failed(b);
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return rc;
}

int tdb_build_tiles(sqlite3 *db, struct st_error *err)
{
    struct builder b = {.db = db, .err = err};
    int rc;

    if (sqlite3_prepare_v3(db, "INSERT INTO tile VALUES (?1, ?2, ?3, ?4, ?5)", -1, SQLITE_PREPARE_PERSISTENT,
                           &b.insert, NULL))
        return failed(&b);
    rc = build_threads(&b);
    if (!rc)
        rc = put_functions(&b);
    sqlite3_finalize(b.insert);
    st_vec_free(&b.functions);
    return rc;
}

/* What a block can hold, so that sums over a screen cannot overflow: 36 years. */
#define MOST_NS    (INT64_C(1) << 60)
#define MOST_CALLS (INT64_C(1) << 40)

/* What is left of a tile. */
struct reading {
    const uint8_t *at, *end;

    bool bad;
};

static int64_t get(struct reading *r)
{
    uint64_t value = 0;

    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        value |= (uint64_t)(*r->at & 0x7f) << shift;
        if (!(*r->at++ & 0x80)) {
            r->bad |= value > INT64_MAX;
            return (int64_t)(value & INT64_MAX);
        }
    }
    r->bad = true;
    return 0;
}

static void read_block(struct reading *r, int level, int64_t *bucket, struct tdb_block *b)
{
    int64_t head = get(r);

    *b = (struct tdb_block){.dense = head & 1};
    if (head >> 1 > 1 << TDB_TILE_BITS)
        r->bad = true;
    else
        *bucket += head >> 1;
    b->start = *bucket << level;
    if (b->dense) {
        b->duration = (int64_t)1 << level;
        b->calls = get(r);
        b->busy_ns = get(r);
        b->symbol_id = get(r);
        return;
    }
    b->start += get(r) & (((int64_t)1 << level) - 1);
    b->duration = get(r);
    b->symbol_id = get(r);
    b->id = get(r);
    b->flags = (uint32_t)get(r);
    b->calls = 1;
}

int tdb_read_tile(const void *data, size_t size, int level, int64_t number, tdb_block_fn *fn, void *ctx,
                  struct st_error *err)
{
    struct reading r = {data, (const uint8_t *)data + size, false};
    int64_t bucket;
    int rc = 0;

    r.bad = level < 0 || level > 62 - TDB_TILE_BITS || number < 0 ||
            number > INT64_MAX >> (level + TDB_TILE_BITS);
    bucket = r.bad ? 0 : number << TDB_TILE_BITS;
    while (!rc && !r.bad && r.at < r.end) {
        struct tdb_block b;

        read_block(&r, level, &bucket, &b);
        r.bad |= b.start > MOST_NS || b.duration > MOST_NS || b.calls > MOST_CALLS || b.busy_ns > MOST_NS;
        if (!r.bad)
            rc = fn(ctx, &b);
    }
    return r.bad ? st_fail(err, ST_EBADFILE, "the trace is damaged: tile %lld of level %d", (long long)number,
                           level)
                 : rc;
}
