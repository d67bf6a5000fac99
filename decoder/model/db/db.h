/* The model -> the tables of the trace database. */
#ifndef ST_DECODER_MODEL_DB_DB_H
#define ST_DECODER_MODEL_DB_DB_H

#include "decoder/model/model.h"
#include "perfdata/reader.h"
#include "tracedb/tracedb.h"

/* What `meta` tells beyond the rows. */
struct dec_provenance {
    const struct pd_reader *reader; /* NULL: raw input */

    const char *snapshot; /* its path, as given */

    const struct dec_flow_counts *flow;

    double seconds; /* that decoding took */

    bool lines; /* source lines are looked for */
};

/* Writes every table and `meta`; the caller commits. What tdb_add_row returns, ST_ENOMEM. */
int dec_model_write(struct dec_model *m, struct tdb_writer *w, const struct dec_provenance *from,
                    struct st_error *err);

#endif
