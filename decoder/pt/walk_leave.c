/* Where tracing goes off with a branch of the code, and where that is not known. */
#include "decoder/pt/fast_packet.h"
#include "decoder/pt/walk.h"

#include <string.h>

/* The held event is such an end. */
static bool is_end(const struct walk *w)
{
    return w->held && w->event.type == ptev_disabled && !w->event.status_update;
}

bool walk_leaves(const struct walk *w, const struct walk_branch *b)
{
    uint64_t ip = w->event.variant.disabled.ip;
    if (!is_end(w))
        return false;
    if (w->event.ip_suppressed)
        return !b->direct || (w->skl014 && b->run->end != CODE_COND_JUMP);
    if (b->run->end == CODE_COND_JUMP)
        return ip == b->target || ip == b->next;
    return !b->direct || ip == b->target;
}

/* Tracing is off, and it is not known with which branch it went off. */
static void forget_end(struct walk *w)
{
    w->held = false;
    w->leave = 0;
    w->enabled = false;
    walk_time(w, &w->event_time);
}

/* Whether the next packet is a TIP with an address of the kernel: behind one of user code it is whole. */
static bool kernel_is_next(const struct walk *w)
{
    uint64_t offset;
    const struct pt_config *config = pt_qry_get_config(w->query);
    if (w->tnt_left || pt_qry_get_offset(w->query, &offset) < 0)
        return false;
    const uint8_t *p = config->begin + offset;
    uint64_t ip = 0;
    return packet_size(p, config->end) && (*p & 0x1f) == PACKET_TIP && *p >> 5 >= 3 && packet_ip(p, &ip) &&
           ip >> 63;
}

/* Whether the held event is at a place in the trampoline. */
static bool is_in_trampoline(const struct walk *w)
{
    uint64_t ip;
    const struct dec_mapping *mapping =
        walk_place(w, &ip) ? dec_space_find(w->where.space, w->now, ip) : NULL;
    return mapping && !strncmp(mapping->image->path, "[uprobes-", strlen("[uprobes-"));
}

bool walk_probe(struct walk *w, int *rc)
{
    bool end = false;
    *rc = walk_fetch(w);
    if (*rc)
        return true;
    if (w->held) {
        end = is_end(w) && w->event.ip_suppressed;
        if (!end && !is_in_trampoline(w))
            return false;
    } else if (!kernel_is_next(w)) {
        return false;
    }
    if (end)
        forget_end(w);
    *rc = walk_gap(w, end ? 0 : WALK_LOST, DEC_GAP_MISMATCH, NULL,
                   "at 0x%llx an optimised uprobe may have been hit: the code in memory has a call to "
                   "[uprobes-trampoline] there, and its file a NOP",
                   (unsigned long long)w->ip);
    return true;
}

/* Erratum SKL014: it may have been this direct branch, or another further on. */
static int lose_end(struct walk *w)
{
    forget_end(w);
    return walk_gap(
        w, 0, DEC_GAP_MISMATCH, NULL,
        "with which branch at or behind 0x%llx tracing left its address filter is not known: this CPU "
        "leaves out the address (erratum SKL014)",
        (unsigned long long)w->ip);
}

int walk_leave(struct walk *w, struct walk_branch *b)
{
    const struct pt_event *event = &w->event;
    if (event->ip_suppressed && b->direct)
        return lose_end(w);
    b->taken = true;
    b->to = event->ip_suppressed ? 0 : event->variant.disabled.ip;
    if (b->run->end == CODE_COND_JUMP)
        b->taken = b->to == b->target;
    w->held = false;
    out_ran(w->out, 1);
    walk_time(w, &w->event_time);
    walk_send(w, b);
    out_event(w->out, DEC_DISABLE, 0, w->ip, 0, 0);
    /* A call comes back behind itself, whoever it was that it called; a direct jump goes on at its target. */
    w->leave = 0;
    if (b->run->end == CODE_CALL || b->run->end == CODE_FAR_CALL)
        w->leave = b->next;
    else if (b->direct)
        w->leave = b->to;
    if (b->run->end == CODE_CALL)
        walk_push(w, b->next);
    w->enabled = false;
    return 0;
}
