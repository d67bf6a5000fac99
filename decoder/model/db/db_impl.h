/* What the files that write the tables share. */
#ifndef ST_DECODER_MODEL_DB_DB_IMPL_H
#define ST_DECODER_MODEL_DB_DB_IMPL_H

#include "decoder/model/db/db.h"
#include "decoder/model/model_impl.h"

/* ---- rows.c ---- */

/* A time in the database. */
int64_t model_time(const struct dec_model *m, uint64_t time);

/* Row id of a thread. */
int64_t model_thread_id(const struct dec_thread *thread);

/* Row id of a symbol. */
struct tdb_value model_symbol_id(const struct dec_model *m, uint32_t symbol);

/* ---- stalls.c ---- */

/* The earliest start of a stall; UINT64_MAX: there is none. */
uint64_t model_first_stall(const struct dec_model *m);

/* meta.ring_stops: how far past `held` (perf clock) each ring of the snapshot went, as the recorder and the
 * rings' packets tell. ST_ENOMEM, or what tdb_set_meta_text returns. */
int model_write_stops(struct dec_model *m, struct tdb_writer *w, uint64_t held, struct st_error *err);

/* Interns what the stacks of stalls name, before the symbols are written. Writes `stall`, `stall_attr` and
 * `stack`. */
int model_write_stalls(struct dec_model *m, struct tdb_writer *w, const char *const *triggers,
                       size_t ntriggers, struct st_error *err);

/* ---- meta.c ---- */

/* The arguments of the recording's command line that stand behind --on. The strings are the caller's to free,
 * as is the array. */
int model_triggers(const struct pd_reader *reader, char ***triggers, size_t *n, struct st_error *err);

int model_write_meta(struct dec_model *m, struct tdb_writer *w, const struct dec_provenance *from,
                     const char *const *triggers, size_t ntriggers, struct st_error *err);

#endif
