/* What a record of each type must hold at least, so that its readers can trust it. Private to perfdata. */
#ifndef ST_PERFDATA_SHAPE_H
#define ST_PERFDATA_SHAPE_H

#include "perfdata/format.h"

#include <stddef.h>

/* The bytes of the fixed fields of a record type, header included; 8 for types nobody knows. */
size_t pd_least_size(uint32_t type);

/* Where the string of a record type begins, or 0: it has none. */
size_t pd_string_offset(uint32_t type);

/* What is wrong within a record that is aligned to 8 and whole, or NULL: too small for its fields, a string
 * without an end, a count of what does not fit. The text is static. */
const char *pd_shape_problem(const struct perf_event_header *record);

#endif
