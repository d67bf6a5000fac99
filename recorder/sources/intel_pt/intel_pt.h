/* The source `intel-pt` (recorder/sources/source.h): every branch, by the processor. */
#ifndef ST_RECORDER_SOURCES_INTEL_PT_INTEL_PT_H
#define ST_RECORDER_SOURCES_INTEL_PT_INTEL_PT_H

#include "recorder/sources/source.h"

extern const struct rec_source_ops rec_source_intel_pt;

#endif
