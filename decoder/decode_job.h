/* One run of `decode`: from the input to the database, the listing or the statistics. */
#ifndef ST_DECODER_DECODE_JOB_H
#define ST_DECODER_DECODE_JOB_H

#include "base/vec.h"
#include "decoder/raw.h"

enum decode_listing { DECODE_NO_LISTING, DECODE_BRANCHES, DECODE_CALLS, DECODE_PACKETS, DECODE_SAMPLES };

struct decode_options {
    const char *input; /* a perf.data; NULL: raw input */

    const char *output; /* the database; NULL: none is written */

    bool replace; /* an output that is there */

    bool bare; /* the database's tables alone: no index of calls, no tiles, no source lines */

    uint64_t memory; /* bytes for calls until they are written: beyond it they go to a file beside `output`;
                        0: as many as are usual */
    bool inlined;    /* functions that were put in line are calls too */

    bool stats; /* to stdout */

    enum decode_listing listing; /* to stdout */

    const char *symfs;

    ST_VEC(const char *) build_id_dirs;

    struct dec_raw raw;
};

/* ST_EFAIL, ST_EBADFILE, ST_EUSAGE, ST_ENOMEM; nothing is left of the output then. */
int decode_run(const struct decode_options *options, struct st_error *err);

#endif
