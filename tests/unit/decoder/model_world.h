/* A recording made by hand (recording.h), decoded into a database: what the tests of the model share. */
#ifndef ST_TESTS_MODEL_WORLD_H
#define ST_TESTS_MODEL_WORLD_H

#include "decoder/model/db/db.h"
#include "decoder/model/model.h"

extern struct dec_sideband *world_sb;
extern struct dec_model *world_model;

/* cmocka's fixtures of a test. */
int world_set_up(void **state);
int world_tear_down(void **state);

/* Reads the recording's side-band into world_sb. */
void world_read(void);

/* That, and begins world_model; `tid` > 0: gives it a ring of that thread, -2: one of CPU 0. */
void world_load(int32_t tid);

/* A branch, or a gap, of a thread of process 10. */
void world_emit(int32_t tid, uint64_t time, enum dec_kind kind, uint64_t from, uint64_t to, uint16_t flags);

/* Writes the database and opens it. */
void world_store(void);

/* The rows of a query: columns with '|', rows with '\n'; NULL is "-". Lasts until the next. */
const char *world_query(const char *sql);

#endif
