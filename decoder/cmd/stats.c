/* `decode --stats`. */
#include "decoder/cmd/stats.h"

#include <inttypes.h>

/* What the fast walk left for which cause, those that there are. */
static void print_slow(FILE *out, const struct dec_flow_counts *f)
{
    static const char *const names[DEC_SLOW_CAUSES] = {
        [DEC_SLOW_BEGIN] = "begin",       [DEC_SLOW_STILL] = "still",
        [DEC_SLOW_OVERFLOW] = "overflow", [DEC_SLOW_TRANSACTION] = "transaction",
        [DEC_SLOW_MODE] = "mode",         [DEC_SLOW_PACKET] = "packet",
        [DEC_SLOW_STATE] = "state",       [DEC_SLOW_CODE] = "code"};
    const char *before = "";
    fprintf(out, "\"slow\": %" PRIu64 ", \"slow_by\": {", f->slow);
    for (size_t i = 0; i < DEC_SLOW_CAUSES; i++) {
        if (f->slow_by[i])
            fprintf(out, "%s\"%s\": %" PRIu64, before, names[i], f->slow_by[i]);
        if (f->slow_by[i])
            before = ", ";
    }
    fprintf(out, "}, ");
}

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
            ", \"bytes\": %" PRIu64 ", ",
            stats->calls, stats->returns, f->errors, f->gaps, f->bytes);
    print_slow(out, f);
    fprintf(out, "\"seconds\": %.6f}\n", stats->seconds);
    if (fflush(out) || ferror(out))
        return st_fail_errno(err, ST_EFAIL, "cannot write the statistics");
    return 0;
}
