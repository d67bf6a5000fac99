/* Whether events can be CPU-wide, and a BPF program choose what of them is the target's
 * (triggers/select.h). */
#ifndef ST_RECORDER_SOURCES_SAMPLE_SELECT_H
#define ST_RECORDER_SOURCES_SAMPLE_SELECT_H

#include "base/error.h"
#include "base/target.h"
#include "triggers/select.h"

/* Loads the programs for a target of processes. *select stays NULL where this kernel or user cannot, which is
 * told in the debug log: then events are opened on threads. ST_ENOMEM, ST_EFAIL. */
int rec_select_open(const struct st_target *target, struct trg_select **select, struct st_error *err);

#endif
