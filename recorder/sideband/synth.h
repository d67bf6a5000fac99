/* The records that tell of what was there before the side-band was: processes, their threads, names and
 * mappings. */
#ifndef ST_RECORDER_SIDEBAND_SYNTH_H
#define ST_RECORDER_SIDEBAND_SYNTH_H

#include "base/confined.h"
#include "base/error.h"
#include "recorder/sideband/record_store.h"

#include <stdint.h>
#include <sys/types.h>

/* Adds the records of process `pid` as of now to the store: FORK and COMM of each thread, MMAP2 (with build
 * ids where the files have them) of each executable mapping. `time` is a perf clock at or before the call,
 * `id` the event they claim to come from. The files are read by `child`, which the caller closes. A process
 * that ends meanwhile is no error. ST_ENOMEM. */
int rec_synth_process(struct rec_store *store, struct st_confined *child, pid_t pid, uint64_t time,
                      uint64_t id, struct st_error *err);

/* The same of a process that came into the target at `time` and was there before: the FORK records have no
 * time of their own (r->time is 0), so that nobody takes them for its birth. */
int rec_synth_joined(struct rec_store *store, struct st_confined *child, pid_t pid, uint64_t time,
                     uint64_t id, struct st_error *err);

/* The same of every process there is. */
int rec_synth_all(struct rec_store *store, struct st_confined *child, uint64_t time, uint64_t id,
                  struct st_error *err);

#endif
