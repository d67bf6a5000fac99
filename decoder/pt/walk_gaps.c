/* The gaps that a walk tells: what could not be decoded, and why. */
#include "decoder/pt/walk.h"

#include <stdarg.h>
#include <stdio.h>

int walk_gap(struct walk *w, int result, enum dec_gap reason, const struct dec_image *image, const char *fmt,
             ...)
{
    char detail[OUT_DETAIL];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof(detail), fmt, args);
    va_end(args);
    if (w->begin && reason == DEC_GAP_OVERFLOW)
        w->out->idle = false;
    else if (w->begin)
        out_take_back(w->out);
    w->begin = false;
    w->missing.lasts = false;
    if (out_gap(w->out, reason, image, detail) && reason != DEC_GAP_OVERFLOW)
        w->counts->errors++;
    return w->out->rc ? WALK_STOP : result;
}

int walk_refused_at(struct walk *w, int status, uint64_t offset)
{
    const char *why = pt_errstr(pt_errcode(status));
    switch (-status) {
    case pte_eos:
        return WALK_END;
    case pte_bad_query:
    case pte_bad_retcomp:
    case pte_retstack_empty:
    case pte_noip:
        return walk_gap(w, WALK_LOST, DEC_GAP_MISMATCH, NULL,
                        "trace and code disagree at 0x%llx: %s (trace offset 0x%llx)",
                        (unsigned long long)w->ip, why, (unsigned long long)offset);
    case pte_bad_status_update:
    case pte_bad_context:
    case pte_no_enable:
        return walk_gap(w, WALK_SYNC, DEC_GAP_MISMATCH, NULL, "%s at trace offset 0x%llx", why,
                        (unsigned long long)offset);
    default: /* pte_nomem too: libipt's queue of events is full, more than any CPU makes of one place */
        return walk_gap(w, WALK_SYNC, DEC_GAP_BAD_PACKET, NULL, "%s at trace offset 0x%llx", why,
                        (unsigned long long)offset);
    }
}

int walk_refused(struct walk *w, int status)
{
    uint64_t offset = 0;
    pt_qry_get_offset(w->query, &offset);
    return walk_refused_at(w, status, offset);
}

static int tell_no_code(struct walk *w)
{
    const struct dec_mapping *mapping = w->mapping;
    unsigned long long ip = w->ip;
    if (!w->where.space)
        return walk_gap(w, WALK_LOST, DEC_GAP_NO_IMAGE, NULL, "no process known to run at 0x%llx", ip);
    if (!mapping)
        return walk_gap(w, WALK_LOST, DEC_GAP_NO_IMAGE, NULL, "nothing known to be mapped at 0x%llx", ip);
    int reason = dec_image_gap(mapping->image);
    if (reason)
        return walk_gap(w, WALK_LOST, (enum dec_gap)reason, mapping->image, "at 0x%llx: %s", ip,
                        mapping->image->detail);
    return walk_gap(w, WALK_LOST, DEC_GAP_NO_IMAGE, mapping->image, "0x%llx lies behind the end of %s", ip,
                    mapping->image->path);
}

struct walk_missing walk_missing_at(const struct dec_space *space, const struct dec_mapping *mapping)
{
    const struct dec_image *image = space && mapping ? mapping->image : NULL;
    int reason = image ? dec_image_gap(image) : 0;
    return (struct walk_missing){
        .reason = reason ? (enum dec_gap)reason : DEC_GAP_NO_IMAGE, .image = image, .lasts = true};
}

int walk_no_code(struct walk *w)
{
    int rc = tell_no_code(w);
    w->missing = walk_missing_at(w->where.space, w->mapping);
    w->missing.behind_psb = w->times.behind_psb;
    return rc;
}

void walk_overflowed(struct walk *w)
{
    w->counts->overflows++;
    walk_gap(w, 0, DEC_GAP_OVERFLOW, NULL, "the CPU could not write its packets fast enough");
}

int walk_bad_code(struct walk *w)
{
    return walk_gap(w, WALK_LOST, DEC_GAP_MISMATCH, w->mapping->image, "no instruction at 0x%llx",
                    (unsigned long long)w->ip);
}

int walk_call_missing(struct walk *w)
{
    struct walk_missing *m = &w->missing;
    int rc = walk_gap(w, WALK_LOST, m->reason, m->image,
                      "the return at 0x%llx leads to a call in code that is missing%s%s",
                      (unsigned long long)w->ip, m->image ? ": " : "", m->image ? m->image->path : "");
    m->lasts = true;
    return rc;
}

int walk_no_call(struct walk *w)
{
    const struct walk_missing *m = &w->missing;
    if (!m->reason || m->behind_psb != w->times.behind_psb)
        return walk_refused(w, -pte_retstack_empty);
    return walk_call_missing(w);
}
