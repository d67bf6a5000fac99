/* Durations and sizes. */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;

    double factor;
};

static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {NULL, 0},
};

static const struct unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"K", 1 << 10},
    {"k", 1 << 10},
    {"KiB", 1 << 10},
    {"M", 1 << 20},
    {"MiB", 1 << 20},
    {"G", 1024.0 * (1 << 20)},
    {"GiB", 1024.0 * (1 << 20)},
    {NULL, 0},
};

static const struct unit *find_unit(const struct unit *table, const char *name)
{
    for (; table->name; table++)
        if (!strcmp(table->name, name))
            return table;
    return NULL;
}

/* strtod takes "inf", "nan", hexadecimal and a sign; people who write durations do not. */
static int parse_quantity(const char *text, double *number, const char **unit)
{
    char *end;

    if (!isdigit((unsigned char)text[0]) || (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')))
        return -1;
    errno = 0;
    *number = strtod(text, &end);
    *unit = end;
    return errno || !isfinite(*number) ? -1 : 0;
}

int st_parse_duration(const char *text, uint64_t *ns, struct st_error *err)
{
    const struct unit *unit;
    const char *suffix;
    double number;

    if (parse_quantity(text, &number, &suffix))
        return st_fail(err, ST_EUSAGE, "'%s' is no duration: write a number and a unit, as 20ms", text);
    if (number == 0 && !*suffix) {
        *ns = 0;
        return 0;
    }
    if (!*suffix)
        return st_fail(err, ST_EUSAGE, "'%s' has no unit: write %ss or %sms (ns, us, ms, s, m, h)", text,
                       text, text);
    unit = find_unit(time_units, suffix);
    if (!unit)
        return st_fail(err, ST_EUSAGE, "'%s': unknown unit '%s' (ns, us, ms, s, m, h)", text, suffix);
    if (number * unit->factor >= 0x1p63)
        return st_fail(err, ST_EUSAGE, "'%s' is too long: at most 292 years", text);
    *ns = (uint64_t)llround(number * unit->factor);
    return 0;
}

int st_parse_size(const char *text, uint64_t *bytes, struct st_error *err)
{
    const struct unit *unit;
    const char *suffix;
    double number;

    if (parse_quantity(text, &number, &suffix))
        return st_fail(err, ST_EUSAGE, "'%s' is no size: write a number and a unit, as 4M", text);
    unit = find_unit(size_units, suffix);
    if (!unit)
        return st_fail(err, ST_EUSAGE, "'%s': unknown unit '%s' (K, M, G)", text, suffix);
    if (number * unit->factor >= 0x1p63)
        return st_fail(err, ST_EUSAGE, "'%s' is too large", text);
    *bytes = (uint64_t)(number * unit->factor);
    return 0;
}

int st_parse_number(const char *what, const char *text, long least, long most, long *value,
                    struct st_error *err)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(text, &end, 10);
    if (end == text || *end || isspace((unsigned char)*text))
        return st_fail(err, ST_EUSAGE, "%s: '%s' is no whole number", what, text);
    if (errno || n < least || n > most)
        return st_fail(err, ST_EUSAGE, "%s: %s is not within %ld to %ld", what, text, least, most);
    *value = n;
    return 0;
}

/* Three significant digits, without a trailing ".00". */
static void format_scaled(double v, const char *unit, char *buf, size_t size)
{
    int digits = v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;

    snprintf(buf, size, "%.*f %s", digits, v, unit);
}

char *st_format_duration(int64_t ns, char *buf, size_t size)
{
    const char *sign = ns < 0 ? "-" : "";
    double v = ns < 0 ? -(double)ns : (double)ns;
    char text[24];

    if (v < 1000)
        snprintf(text, sizeof(text), "%.0f ns", v);
    else if (v < 999.5e3)
        format_scaled(v / 1e3, "us", text, sizeof(text));
    else if (v < 999.5e6)
        format_scaled(v / 1e6, "ms", text, sizeof(text));
    else if (v < 120e9)
        format_scaled(v / 1e9, "s", text, sizeof(text));
    else
        snprintf(text, sizeof(text), "%.0f m %02.0f s", floor(v / 60e9), floor(fmod(v / 1e9, 60)));
    snprintf(buf, size, "%s%s", sign, text);
    return buf;
}

char *st_format_size(uint64_t bytes, char *buf, size_t size)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t i = 0;

    while (v >= 1024 && i + 1 < sizeof(names) / sizeof(names[0])) {
        v /= 1024;
        i++;
    }
    snprintf(buf, size, v == floor(v) ? "%.0f %s" : "%.1f %s", v, names[i]);
    return buf;
}

char *st_format_count(uint64_t n, char *buf, size_t size)
{
    char plain[24];
    int len = snprintf(plain, sizeof(plain), "%" PRIu64, n);
    size_t out = 0;

    for (int i = 0; i < len && out + 2 < size; i++) {
        if (i && (len - i) % 3 == 0)
            buf[out++] = ',';
        buf[out++] = plain[i];
    }
    buf[out] = '\0';
    return buf;
}
