/* What a stall record says beyond its common fields: its "key=value" attributes. */
#ifndef ST_BASE_STALL_ATTRIBUTE_H
#define ST_BASE_STALL_ATTRIBUTE_H

#include "base/stall_record.h"

/* The value of an attribute, in the record. NULL: there is none, or it has no end, as a user's own BPF
 * program may write it. */
const char *st_stall_attribute(const struct st_stall_record *r, const char *key);

/* Of a thread that could run and had no CPU: whether a CPU quota of its control group kept it from one. */
enum st_quota {
    ST_QUOTA_NONE, /* it has none that was ever used up, or was not throttled as it was looked at */

    ST_QUOTA_MAYBE, /* the quota is used up now and then, and nobody looked in this wait */

    ST_QUOTA_HELD, /* throttled as it was looked at, in the wait */
};

enum st_quota st_stall_quota(const struct st_stall_record *r);

#endif
