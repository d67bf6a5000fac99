/* For tests of the kinds that only their workload causes: what it noted, and what was told of it. */
#ifndef ST_TEST_TRIGGERS_SPANS_H
#define ST_TEST_TRIGGERS_SPANS_H

#include "told.h"

#define ABOVE 13 /* stalls over the threshold in each workload: a prime number */
#define BELOW 7

/* Forks the workload, watches it by `trigger`, lets it go, and waits until it noted `noted` stalls, `fired`
 * have fired and, where any is to fire, what was told as ongoing has ended. */
void spans_run(struct workload *work, workload_fn *fn, struct watch *w, const char *trigger, uint32_t noted,
               size_t fired);

/* Each noted stall that was longer than the threshold fired exactly once, with its thread, and with its
 * length within 5 % + 100 us (what lies around the call that is measured belongs to the note only; `slack_ns`
 * of it is forgiven too); each shorter one did not; nothing else fired. Returns how many fired. */
size_t spans_assert(const struct workload *work, const struct watch *w, enum st_stall_kind kind,
                    uint64_t threshold_ns, uint64_t slack_ns);

/* The record that tells the whole of what r tells: its completion if r is an ongoing one. */
const struct st_stall_record *spans_whole(const struct watch *w, const struct st_stall_record *r);

/* The records in the order of their starts: they come in by CPU. */
void spans_sort(struct watch *w);

/* The value of an attribute, "" if there is none. */
const char *spans_attribute(const struct st_stall_record *r, const char *key);

/* Fires as ongoing: the stall that the workload is in right now, of its first thread. */
const struct st_stall_record *spans_wait_ongoing(struct watch *w, pid_t tid);

/* Until the completion of an ongoing one of the thread's has come, or for ten seconds. */
void spans_wait_completion(struct watch *w, pid_t tid);

/* Forks a workload that comes to hang, watches it by `trigger` and waits for the ongoing stall. */
const struct st_stall_record *spans_hang(struct workload *work, workload_fn *fn, struct watch *w,
                                         const char *trigger);

#endif
