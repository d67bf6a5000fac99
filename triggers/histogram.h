/* What triggers measured, as text for people, as JSON, and for OpenMetrics. */
#ifndef ST_TRIGGERS_HISTOGRAM_H
#define ST_TRIGGERS_HISTOGRAM_H

#include "triggers/bpf/config.h"
#include "triggers/trigger.h"

#include <stdint.h>
#include <stdio.h>

/* Adds the values of `one` to those of `sum`. */
void trg_hist_add(struct hist *sum, const struct hist *one);

/* How many values were measured. */
uint64_t trg_hist_count(const struct hist *h);

/* The value that `share` (0 to 1) of all are not above, in ns: the upper edge of its bucket, at most 12.5 %
 * too high, never more than the worst. 0 when nothing was measured. */
uint64_t trg_hist_percentile(const struct hist *h, double share);

/* How many values lie in each power of two: n[i] in [2^i, 2^(i+1)) ns, n[0] from 0 on. */
void trg_hist_powers(const struct hist *h, uint64_t n[64]);

/* A bar a power of two, then p50, p99, p99.9 and the worst; `what` heads it. At most 79 columns. */
void trg_hist_print(const struct hist *h, const char *what, FILE *to);

/* Each trigger's histogram, the thresholds that would fire for 1 % and 0.1 % of what was measured and for the
 * worst, and where threads are told apart a line for each of the ten worst; with `each_thread`, every
 * thread's histogram. */
int trg_print_histograms(struct trg_set *set, bool each_thread, FILE *to, struct st_error *err);

/* Why nothing fired, a line a trigger: how far the longest stayed below the threshold, and what was left out.
 */
int trg_print_silence(struct trg_set *set, FILE *to, struct st_error *err);

/* What became of stalls that reached their threshold. */
struct trg_traps {
    unsigned fired;

    unsigned written; /* snapshots of those that fired */

    unsigned dropped; /* that fired, and whose snapshot could not be taken or written; when nothing is under
                         way, fired = written + dropped */

    unsigned without; /* stalls that did not fire: the triggers were held, or another stall had fired */
};

/* One line of JSON: {"triggers": [{"trigger", "measures", "count", "sum_ns", "p50_ns", "p99_ns", "p999_ns",
 * "worst_ns", "buckets": [{"from_ns", "to_ns", "count"}, ...], "threads": [{"tid", "thread", and the same},
 * ...]}, ...], "lost": N}. A bucket is a power of two; those without values are left out. */
int trg_print_json(struct trg_set *set, FILE *to, struct st_error *err);

/* OpenMetrics text 1.0: histograms stalltrap_measured_seconds{trigger} and
 * stalltrap_thread_seconds{trigger,tid,thread}, counter stalltrap_lost_events. `traps`, unless NULL: counters
 * stalltrap_traps, stalltrap_trap_snapshots, stalltrap_traps_dropped and stalltrap_stalls_without_trap too.
 */
int trg_print_openmetrics(struct trg_set *set, const struct trg_traps *traps, FILE *to, struct st_error *err);

#endif
