/* The source `sample` (recorder/sources/source.h): call chains, many thousand a second, wherever there are
 * perf events. */
#ifndef ST_RECORDER_SOURCES_SAMPLE_SAMPLE_H
#define ST_RECORDER_SOURCES_SAMPLE_SAMPLE_H

#include "recorder/sources/source.h"

extern const struct rec_source_ops rec_source_sample;

#endif
