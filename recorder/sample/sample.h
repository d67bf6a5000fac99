/* The source `sample` (recorder/source.h): call chains, many thousand a second, wherever there are perf
 * events. */
#ifndef ST_RECORDER_SAMPLE_H
#define ST_RECORDER_SAMPLE_H

#include "recorder/source.h"

extern const struct rec_source_ops rec_source_sample;

#endif
