/* A stall that was told while it went on, and then its end: one record. */
#ifndef ST_BASE_STALL_COMPLETE_H
#define ST_BASE_STALL_COMPLETE_H

#include "base/stall_record.h"

#include <stdbool.h>

/* Whether `completion` is the end of the stall that `ongoing` tells. */
bool st_stall_completes(const struct st_stall_record *ongoing, const struct st_stall_record *completion);

/* Puts the end into the record. The completion tells everything that the ongoing record did, except what
 * could only be seen at the time: that is kept. Whether it fired stays. The record counts from then on by the
 * completion's now_ktime. */
void st_stall_complete(struct st_stall_record *record, const struct st_stall_record *completion);

#endif
