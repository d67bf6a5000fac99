/* The source `step` (recorder/sources/source.h): a process's branches by ptrace stepping, told as Intel PT
 * packets.
 */
#ifndef ST_RECORDER_SOURCES_STEP_STEP_H
#define ST_RECORDER_SOURCES_STEP_STEP_H

#include "recorder/sources/source.h"

extern const struct rec_source_ops rec_source_step;

/* Instructions stepped so far. */
uint64_t step_count(const struct rec_source *s);

/* For tests: sources opened from now on write every return as a TIP packet (NoRETComp), or use no debug
 * registers, as on a machine that has none to give. */
extern bool step_no_ret_compression, step_no_breaks;

#endif
