/* A recording made by hand, decoded into a database: what the tests of the model share. */
#include "model_world.h"

#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct pd_reader *reader;
static struct dec_images *images;
struct dec_sideband *world_sb;
struct dec_model *world_model;
static struct dec_flow_counts counts;
static sqlite3 *db;

int world_set_up(void **state)
{
    (void)state;
    recording_begin();
    return 0;
}

int world_tear_down(void **state)
{
    (void)state;
    sqlite3_close(db);
    db = NULL;
    dec_model_free(world_model);
    world_model = NULL;
    dec_sideband_free(world_sb);
    world_sb = NULL;
    dec_images_free(images);
    images = NULL;
    pd_reader_close(reader);
    reader = NULL;
    recording_remove();
    return 0;
}

void world_read(void)
{
    struct st_error err = {0};

    recording_end();
    if (pd_reader_open(recording_path(), &reader, &err) || dec_images_new(NULL, &images, &err) ||
        dec_sideband_read(reader, images, &world_sb, &err))
        fail_msg("%s", err.text);
}

/* Reads the recording; `tid` > 0: gives it a ring of that thread, -2: one of CPU 0. */
void world_load(int32_t tid)
{
    struct st_error err = {0};

    world_read();
    if (tid)
        assert_int_equal(st_vec_push(&world_sb->rings,
                                     (struct dec_ring){.tid = tid > 0 ? tid : -1, .cpu = tid > 0 ? -1 : 0}),
                         0);
    if (dec_model_new(world_sb, NULL, &world_model, &err))
        fail_msg("%s", err.text);
}

void world_emit(int32_t tid, uint64_t time, enum dec_kind kind, uint64_t from, uint64_t to, uint16_t flags)
{
    struct dec_stream_info info = {.pid = 10, .tid = tid};
    struct dec_event e = {.time = time,
                          .from = from,
                          .to = to,
                          .kind = (uint16_t)kind,
                          .cpu = 0,
                          .flags = (uint16_t)(flags | DEC_TAKEN | DEC_TIME_EXACT | 5 << DEC_LENGTH_SHIFT)};

    if (kind == DEC_GAP)
        e.arg = from;
    assert_int_equal(dec_model_emit(world_model, &info, &e, 1, kind == DEC_GAP ? "so it is" : NULL), 0);
}

/* Writes the database and opens it. */
void world_store(void)
{
    struct dec_provenance from = {.reader = reader, .snapshot = "test", .flow = &counts};
    struct st_error err = {0};
    struct tdb_writer *w;

    if (dec_model_end(world_model, &err) || tdb_writer_open(recording_database(), &w, &err) ||
        dec_model_write(world_model, w, &from, &err) || tdb_writer_commit(w, true, &err) ||
        tdb_open(recording_database(), &db, &err))
        fail_msg("%s", err.text);
}

/* The rows of a query: columns with '|', rows with '\n'; NULL is "-". */
const char *world_query(const char *sql)
{
    static char text[4096];
    sqlite3_stmt *s;
    size_t n = 0;

    text[0] = '\0';
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            const char *value = (const char *)sqlite3_column_text(s, i);

            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? "|" : "", value ? value : "-");
        }
        n += (size_t)snprintf(text + n, sizeof(text) - n, "\n");
        assert_true(n < sizeof(text));
    }
    sqlite3_finalize(s);
    return text;
}
