/* One run of `decode`: from the input to the database, the listing or the statistics. */
#ifndef ST_DECODER_CMD_DECODE_JOB_H
#define ST_DECODER_CMD_DECODE_JOB_H

#include "base/vec.h"
#include "decoder/cmd/raw.h"

enum decode_listing { DECODE_NO_LISTING, DECODE_BRANCHES, DECODE_CALLS, DECODE_PACKETS, DECODE_SAMPLES };

struct decode_options {
    const char *input; /* a perf.data; NULL: raw input */

    long given_input, given_folder; /* descriptors that stand for `input`, and for the folder that it and
                                       `output` are in (decoder/cmd/given.h); 0: none */

    const char *output; /* the database, by the name it will have; NULL: none is written */

    bool replace; /* an output that is there */

    bool bare; /* the database's tables alone: no index of calls, no tiles, no source lines */

    uint64_t memory; /* bytes that decoding may take (dec_memory); a part is for calls until they are written,
                        beyond it they go to a file beside `output`. 0: as many as are usual */
    bool inlined;    /* functions that were inlined are calls too */

    bool stats; /* to stdout */

    enum decode_listing listing; /* to stdout */

    const char *symfs;

    ST_VEC(const char *) build_id_dirs;

    struct dec_raw raw;
};

/* In a worker (decoder/cmd/worker.h). ST_EFAIL, ST_EBADFILE, ST_EUSAGE, ST_ENOMEM. */
int decode_run(const struct decode_options *options, struct st_error *err);

#endif
