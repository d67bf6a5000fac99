/* A stall that was told while it went on, and then its end: one record. */
#include "base/stall_complete.h"

#include <stddef.h>
#include <string.h>

/* The attribute that begins at *at, which is then behind it. NULL: there is none, or one without an end, as a
 * user's own BPF program may write. */
static const char *next_attribute(const struct st_stall_record *r, size_t *at)
{
    size_t n = r->extra_n < ST_STALL_EXTRA ? r->extra_n : ST_STALL_EXTRA;
    const char *text = r->extra + *at;
    const char *end = *at < n ? memchr(text, 0, n - *at) : NULL;

    if (!end)
        return NULL;
    *at += (size_t)(end - text) + 1;
    return text;
}

static bool has_attribute(const struct st_stall_record *r, const char *key, size_t length)
{
    const char *text;

    for (size_t at = 0; (text = next_attribute(r, &at));)
        if (!strncmp(text, key, length))
            return true;
    return false;
}

/* What only the ongoing record may have: it was looked up as it fired. The length of the key; 0: not so. */
static size_t kept(const char *attribute)
{
    static const char *const keys[] = {
        "file=",       "accepted=",    "next_kernel=", "timeout_ns=",   "tracer=",       "lock_holder=",
        "stopped_by=", "stop_signal=", "peer=",        "peer_process=", "throttled_now="};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!strncmp(attribute, keys[i], strlen(keys[i])))
            return strlen(keys[i]);
    return 0;
}

static void keep_attributes(struct st_stall_record *r, const struct st_stall_record *before)
{
    const char *text;

    for (size_t at = 0; (text = next_attribute(before, &at));) {
        size_t n = strlen(text) + 1, key = kept(text);

        if (!key || r->extra_n > ST_STALL_EXTRA || n > ST_STALL_EXTRA - (size_t)r->extra_n ||
            has_attribute(r, text, key))
            continue;
        memcpy(r->extra + r->extra_n, text, n);
        r->extra_n = (st_u16)(r->extra_n + n);
    }
}

bool st_stall_completes(const struct st_stall_record *ongoing, const struct st_stall_record *completion)
{
    return completion->flags & ST_STALL_COMPLETION && ongoing->flags & ST_STALL_ONGOING &&
           ongoing->seq == completion->seq && ongoing->trigger == completion->trigger;
}

void st_stall_complete(struct st_stall_record *record, const struct st_stall_record *completion)
{
    struct st_stall_record r = *completion;

    if (!r.ustack_n) {
        r.ustack_n = record->ustack_n;
        memcpy(r.ustack, record->ustack, sizeof(r.ustack));
    }
    if (!r.kstack_n) {
        r.kstack_n = record->kstack_n;
        memcpy(r.kstack, record->kstack, sizeof(r.kstack));
    }
    if (r.next_tid == record->next_tid && !r.next_comm[0])
        memcpy(r.next_comm, record->next_comm, sizeof(r.next_comm));
    keep_attributes(&r, record);
    r.flags |= record->flags & ST_STALL_FIRED;
    *record = r;
}
