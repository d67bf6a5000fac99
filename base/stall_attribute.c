#include "base/stall_attribute.h"

#include <string.h>

const char *st_stall_attribute(const struct st_stall_record *r, const char *key)
{
    size_t size = r->extra_n < ST_STALL_EXTRA ? r->extra_n : ST_STALL_EXTRA, length = strlen(key);

    for (size_t at = 0; at < size; at += strnlen(r->extra + at, size - at) + 1)
        if (size - at > length && !strncmp(r->extra + at, key, length) && r->extra[at + length] == '=' &&
            memchr(r->extra + at, 0, size - at))
            return r->extra + at + length + 1;
    return NULL;
}

enum st_quota st_stall_quota(const struct st_stall_record *r)
{
    const char *now = st_stall_attribute(r, "throttled_now"), *ever = st_stall_attribute(r, "throttled");

    if (now)
        return strcmp(now, "0") ? ST_QUOTA_HELD : ST_QUOTA_NONE;
    return ever && strcmp(ever, "0") ? ST_QUOTA_MAYBE : ST_QUOTA_NONE;
}
