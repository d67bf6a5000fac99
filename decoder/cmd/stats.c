/* `decode --stats`. */
#include "decoder/cmd/stats.h"

#include <inttypes.h>

int dec_stats_print(FILE *out, const struct dec_stats *stats, struct st_error *err)
{
    const struct dec_flow_counts *f = &stats->flow;
    fprintf(out,
            "{\"instructions\": %" PRIu64 ", \"branches\": {\"cond_jump\": %" PRIu64 ", \"jump\": %" PRIu64
            ", \"call\": %" PRIu64 ", \"return\": %" PRIu64 ", \"far_call\": %" PRIu64
            ", \"far_return\": %" PRIu64 ", \"far_jump\": %" PRIu64 ", \"taken\": %" PRIu64
            ", \"indirect\": %" PRIu64 "}, ",
            f->instructions, f->cond_jump, f->jump, f->call, f->ret, f->far_call, f->far_return, f->far_jump,
            f->taken, f->indirect);
    fprintf(out,
            "\"calls\": %" PRIu64 ", \"returns\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"gaps\": %" PRIu64
            ", \"bytes\": %" PRIu64 ", \"slow\": %" PRIu64 ", \"seconds\": %.6f}\n",
            stats->calls, stats->returns, f->errors, f->gaps, f->bytes, f->slow, stats->seconds);
    if (fflush(out) || ferror(out))
        return st_fail_errno(err, ST_EFAIL, "cannot write the statistics");
    return 0;
}
