/* `decode --stats`: one JSON object. */
#ifndef ST_DECODER_CMD_STATS_H
#define ST_DECODER_CMD_STATS_H

#include "decoder/pt/flow.h"

#include <stdio.h>

struct dec_stats {
    struct dec_flow_counts flow;

    uint64_t calls, returns; /* of the stack builder, where one ran; else flow.call and flow.ret */

    double seconds; /* wall time of decoding */
};

/* Prints
 * {"instructions":…,"branches":{…},"calls":…,"returns":…,"errors":…,"gaps":…,"bytes":…,"slow":…,"seconds":…}
 * and a newline. ST_EFAIL: writing failed. */
int dec_stats_print(FILE *out, const struct dec_stats *stats, struct st_error *err);

#endif
