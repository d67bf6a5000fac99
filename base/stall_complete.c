/* A stall that was told while it went on, and then its end: one record. */
#include "base/stall_complete.h"

#include <stddef.h>
#include <string.h>

static bool has_attribute(const struct st_stall_record *r, const char *key, size_t length)
{
    for (size_t at = 0; at < r->extra_n; at += strlen(r->extra + at) + 1)
        if (!strncmp(r->extra + at, key, length))
            return true;
    return false;
}

/* What was looked up for the ongoing record when it fired, and the completion does not tell. */
static void keep_attributes(struct st_stall_record *r, const struct st_stall_record *before)
{
    static const char *const kept[] = {
        "file=",        "accepted=",   "next_kernel=", "timeout_ns=", "tracer=",
        "lock_holder=", "stopped_by=", "stop_signal=", "peer=",       "peer_process="};

    for (size_t at = 0; at < before->extra_n; at += strlen(before->extra + at) + 1) {
        size_t n = strlen(before->extra + at) + 1;

        for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
            if (strncmp(before->extra + at, kept[i], strlen(kept[i])) ||
                n > ST_STALL_EXTRA - (size_t)r->extra_n || has_attribute(r, kept[i], strlen(kept[i])))
                continue;
            memcpy(r->extra + r->extra_n, before->extra + at, n);
            r->extra_n = (st_u16)(r->extra_n + n);
        }
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
