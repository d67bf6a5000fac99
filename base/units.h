/* Durations and sizes as people write and read them. */
#ifndef ST_BASE_UNITS_H
#define ST_BASE_UNITS_H

#include "base/error.h"

#include <stdint.h>

/* "20ms", "1.5s", "300us", "100ns", "2m", "1h" to ns. A number needs a unit; 0 needs none. The whole text
 * must be used. ST_EUSAGE: no number, no or unknown unit, negative, more than 2^63-1 ns; *ns is then
 * untouched. */
int st_parse_duration(const char *text, uint64_t *ns, struct st_error *err);

/* "4096", "64K", "4M", "1G" (also KiB, MiB, GiB: powers of 1024) to bytes. ST_EUSAGE as above; *bytes
 * untouched. */
int st_parse_size(const char *text, uint64_t *bytes, struct st_error *err);

/* A whole decimal number within [least, most]. ST_EUSAGE otherwise; *value untouched. `what` names it in the
 * message. */
int st_parse_number(const char *what, const char *text, long least, long most, long *value,
                    struct st_error *err);

/* Three significant digits and the unit that fits: "312 ns", "40.2 ms", "1.50 s", "2 m 05 s". buf needs 24
 * bytes. Returns buf. */
char *st_format_duration(int64_t ns, char *buf, size_t size);

/* "312 B", "4 MiB", "1.5 GiB". buf needs 24 bytes. Returns buf. */
char *st_format_size(uint64_t bytes, char *buf, size_t size);

/* 1234567 as "1,234,567". buf needs 32 bytes. Returns buf. */
char *st_format_count(uint64_t n, char *buf, size_t size);

#endif
