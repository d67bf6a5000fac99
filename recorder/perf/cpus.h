/* The CPUs that are online. */
#ifndef ST_RECORDER_PERF_CPUS_H
#define ST_RECORDER_PERF_CPUS_H

#include "base/error.h"
#include "base/vec.h"

typedef ST_VEC(int) rec_cpu_list;

/* Fills the list (st_vec_free it) from /sys/devices/system/cpu/online. ST_EFAIL, ST_ENOMEM. */
int rec_cpus_online(rec_cpu_list *cpus, struct st_error *err);

/* The parser: "0-3,8,10-11\n". ST_EFAIL when it is no such list. */
int rec_cpus_parse(const char *text, rec_cpu_list *cpus, struct st_error *err);

/* The CPUs that are in one of the lists only, as "1,3"; "" where there are none. Returns text. */
const char *rec_cpus_differ(const rec_cpu_list *a, const rec_cpu_list *b, char *text, size_t size);

/* The CPUs that came or went since `then`, likewise; "" too where the kernel does not tell. Returns text. */
const char *rec_cpus_changed(const rec_cpu_list *then, char *text, size_t size);

#endif
