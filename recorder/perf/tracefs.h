/* Tracepoints as tracefs describes them. */
#ifndef ST_RECORDER_PERF_TRACEFS_H
#define ST_RECORDER_PERF_TRACEFS_H

#include "base/error.h"
#include "base/vec.h"

#include <stdint.h>

typedef ST_VEC(char) rec_text;

/* The number of the tracepoint "sched:sched_waking", perf_event_attr.config of an event on it. 0, or
 * ST_ECANNOT: tracefs is not mounted, this user may not read it, or the kernel has no such tracepoint. */
int rec_tracepoint_id(const char *name, uint64_t *id, struct st_error *err);

/* What tracefs says of the layout of its records, as text that ends in a NUL; *text is the caller's to free
 * (st_vec_free), also on error. ST_ECANNOT (as above), ST_ENOMEM. */
int rec_tracepoint_format(const char *name, rec_text *text, struct st_error *err);

/* What perf has to know of the tracepoints to read their samples: the bytes of PD_FEAT_TRACING_DATA
 * (tools/perf/util/trace-event-info.c), without the parts that only ftrace needs. *text is the caller's to
 * free (st_vec_free), also on error. 0, ST_ECANNOT (as above), ST_ENOMEM. */
int rec_tracing_data(const char *const *names, size_t n, rec_text *text, struct st_error *err);

#endif
