/* The fields of perf records. */
#include "recorder/perf/record.h"

#include <string.h>

uint32_t rec_sample_raw(const struct perf_event_header *record, uint64_t raw[REC_RAW_WORDS], size_t *at)
{
    uint32_t size;

    *at = sizeof(struct rec_sample_head) + sizeof(size);
    if (record->type != PERF_RECORD_SAMPLE || record->size < *at)
        return 0;
    memcpy(&size, (const char *)record + sizeof(struct rec_sample_head), sizeof(size));
    if (size > record->size - *at)
        return 0;
    memcpy(raw, (const char *)record + *at, size);
    return size;
}

uint64_t rec_record_time(const struct perf_event_header *record)
{
    if (record->type == PERF_RECORD_SAMPLE)
        return record->size < sizeof(struct rec_sample_head) ? 0
                                                             : ((const struct rec_sample_head *)record)->time;
    if (record->size < sizeof(*record) + sizeof(struct rec_trailer))
        return 0;
    return ((const struct rec_trailer *)((const char *)record + record->size) - 1)->time;
}
