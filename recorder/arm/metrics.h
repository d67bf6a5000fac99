/* What the triggers measure, for people who watch many machines: OpenMetrics text, in a file or over HTTP. */
#ifndef ST_RECORDER_ARM_METRICS_H
#define ST_RECORDER_ARM_METRICS_H

#include "base/error.h"
#include "triggers/histogram.h"

#include <stdint.h>

#define REC_METRICS_EVERY                                                                                    \
    10000000000ull /* ns: how often a file is written where nothing else is asked for                        \
                    */

struct rec_metrics;

/* `where` is PORT or ADDRESS:PORT ([ADDRESS]:PORT for IPv6; a port alone is on the loopback), which is served
 * by the loop; or a file, which is written anew every `every` ns. `set` is open; `traps` may be NULL; both
 * stay the caller's. ST_EUSAGE: no such port; ST_EFAIL: it is taken, or the file cannot be written. */
int rec_metrics_open(const char *where, struct trg_set *set, const struct trg_traps *traps, int loop,
                     uint64_t every, struct rec_metrics **metrics, struct st_error *err);

/* A file is written once more, with the last figures. Nothing for NULL or a port. */
int rec_metrics_finish(struct rec_metrics *metrics, struct st_error *err);

/* NULL is allowed. */
void rec_metrics_close(struct rec_metrics *metrics);

#endif
