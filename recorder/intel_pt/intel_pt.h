/* The source `intel-pt` (recorder/source.h): every branch, by the processor. */
#ifndef ST_RECORDER_INTEL_PT_H
#define ST_RECORDER_INTEL_PT_H

#include "recorder/source.h"

extern const struct rec_source_ops rec_source_intel_pt;

#endif
