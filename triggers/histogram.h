/* What a trigger measured, as text. */
#ifndef ST_TRIGGERS_HISTOGRAM_H
#define ST_TRIGGERS_HISTOGRAM_H

#include "triggers/config.h"

#include <stdint.h>
#include <stdio.h>

/* How many values were measured. */
uint64_t trg_hist_count(const struct hist *h);

/* The value that `share` (0 to 1) of all are not above, in ns: the upper edge of its bucket, at most 12.5 %
 * too high, never more than the worst. 0 when nothing was measured. */
uint64_t trg_hist_percentile(const struct hist *h, double share);

/* A bar a power of two, then p50, p99, p99.9 and the worst; `what` heads it. At most 78 columns. */
void trg_hist_print(const struct hist *h, const char *what, FILE *to);

#endif
