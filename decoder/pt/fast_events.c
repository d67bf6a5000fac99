/* Packets of what is no branch of the code: tracing on and off, interrupts, other address spaces and modes.
 */
#include "decoder/pt/fast.h"

#include "decoder/pt/fast_packet.h"

bool fast_enable(struct fast *f, const uint8_t *p)
{
    bool known = packet_ip(p, &f->s.last_ip);
    uint64_t ip = f->s.last_ip;
    if (!known || f->s.on || !fast_point(f) || !fast_ask_now(f))
        return false;
    f->s.times.fresh = false;
    f->s.on = true;
    f->s.lost = false;
    f->s.begin = true;
    fast_stand(f, ip);
    return !fast_trailing(f) || fast_entry_ip(f, TRAIL_ENABLE, f->s.leave && f->s.leave == ip, ip);
}

/* Whether tracing went off with the branch of the node at `at`. */
static bool leaves(const struct fast *f, fast_edge at, bool known, uint64_t ip)
{
    const struct fast_node_info *info = &f->graph->info[at >> FAST_SHIFT];
    switch (at & 7) {
    case FAST_COND:
        return known && (ip == fast_target(f->graph, info) || ip == fast_next(f->graph, info));
    case FAST_CALL:
    case FAST_JUMP:
        return known && ip == fast_target(f->graph, info);
    case FAST_RETURN:
    case FAST_TIP:
    case FAST_TIP_CALL:
        return true;
    default:
        return false;
    }
}

/* The branch with which tracing goes off: the first that could. */
static bool find_leaving(struct fast *f, bool known, uint64_t ip, fast_edge *at)
{
    for (unsigned fuel = 1 << 16; fuel; fuel--) {
        if ((f->s.at & 7) == FAST_OPEN && !fast_open_here(f))
            return false;
        *at = f->s.at;
        if (fast_is_stuck(f, *at))
            return false;
        if (leaves(f, *at, known, ip))
            return true;
        if (!fast_pass(f, *at))
            return false;
    }
    return false;
}

bool fast_disable(struct fast *f, const uint8_t *p)
{
    fast_edge at;
    bool known = packet_ip(p, &f->s.last_ip);
    uint64_t ip = known ? f->s.last_ip : 0;
    if (!f->s.on || (!known && f->w->skl014) || !find_leaving(f, known, ip, &at))
        return false;
    uint32_t node = at >> FAST_SHIFT;
    fast_run_over(f, node);
    if (!fast_point(f))
        return false;
    f->far_waits = false;
    const struct fast_node_info *info = &f->graph->info[node];
    uint64_t next = fast_next(f->graph, info);
    bool taken = info->run.end != CODE_COND_JUMP || ip == fast_target(f->graph, info);
    if (!fast_trailing(f))
        fast_visit(f, node, taken && ip != next ? FAST_TAKEN : FAST_FALL);
    else if (!fast_entry_ip(f, TRAIL_LEAVE, node, ip))
        return false;
    f->s.leave = info->run.direct ? ip : 0;
    if (info->run.end == CODE_CALL || info->run.end == CODE_FAR_CALL)
        f->s.leave = next;
    if (info->run.end == CODE_CALL)
        fast_push(f, fast_fall(f, node));
    f->s.on = false;
    f->s.times.fresh = false;
    return true;
}

/* A switch of the address space: by an instruction, or by a far branch whose address follows. */
bool fast_paging(struct fast *f)
{
    fast_edge at;
    uint64_t serial = f->s.serial;
    if (f->s.on) {
        if (!fast_advance_paging(f, &at))
            return false;
        fast_run_up_to(f, at >> FAST_SHIFT);
    }
    if (!fast_point(f))
        return false;
    if (f->s.on && f->s.serial != serial) {
        if (f->begun_point) /* no CPU tells of two switches at one instruction */
            return false;
        f->begun_point = f->begun != 0;
    }
    f->s.times.fresh = false;
    f->far_waits = f->s.on && (at & 7) == FAST_TIP;
    return !f->s.on || f->far_waits || fast_pass(f, at);
}

/* What ends an interrupted instruction. */
static bool on_interrupt(struct fast *f, uint64_t from, const uint8_t *p)
{
    bool known = packet_ip(p, &f->s.last_ip);
    uint64_t ip = f->s.last_ip;
    f->s.did = true;
    f->s.begin = false;
    if ((*p & 0x1f) == PACKET_PGD) {
        if (f->w->skd022 && f->s.where.space && code_is_vm_entry(f->s.where.space, f->s.now, from))
            return false;
        f->s.on = false;
        f->s.leave = from;
        return !fast_trailing(f) || fast_entry_ip(f, TRAIL_DISABLE, 0, from);
    }
    if (!known)
        return false;
    if (fast_trailing(f)) {
        if (!fast_entry_ip(f, TRAIL_ASYNC, 0, from) || !fast_room(f, 2))
            return false;
        f->trail.at[f->trail.n++] = (uint32_t)ip;
        f->trail.at[f->trail.n++] = (uint32_t)(ip >> 32);
    }
    fast_stand(f, ip);
    return !f->s.ask_due || !((ip | from) >> 63) || fast_ask_now(f);
}

bool fast_within_interrupt(struct fast *f, const uint8_t *p, size_t size)
{
    enum code_mode mode;
    if (*p == PACKET_EXTENDED && p[1] == EXTENDED_PIP) {
        f->s.times.fresh = false;
        return fast_is_host(f, p);
    }
    if (*p != PACKET_MODE)
        return fast_time(f, p, size);
    if (!packet_mode(p, &mode) || mode != f->s.mode)
        return false;
    fast_told_mode(f, mode);
    return true;
}

/* An address of execution: here only that of an interrupt, with what came of it behind it. */
bool fast_interrupt(struct fast *f, const uint8_t *p)
{
    bool known = packet_ip(p, &f->s.last_ip);
    uint64_t from = f->s.last_ip;
    if (!known || !f->s.on || f->far_waits || !fast_reach(f, from))
        return false;
    f->s.times.fresh = false;
    for (;;) {
        p = f->p;
        size_t size = packet_size(p, f->end);
        if (size == 0)
            return false;
        f->p += size;
        if ((*p & 0x1f) == PACKET_TIP || (*p & 0x1f) == PACKET_PGD)
            break;
        if (!fast_within_interrupt(f, p, size))
            return false;
    }
    bool done = fast_point(f) && on_interrupt(f, from, p);
    f->s.times.fresh = false;
    return done;
}

/* Mode.Exec binds to the address that follows; only one that changes nothing is taken here. */
bool fast_mode(struct fast *f, const uint8_t *p)
{
    enum code_mode mode;
    size_t size = 2;
    if (!packet_mode(p, &mode) || mode != f->s.mode)
        return false;
    fast_told_mode(f, mode);
    do {
        p += size;
        size = packet_size(p, f->end);
    } while (size && packet_is_time(p));
    if (size == 0 && (p == f->end || f->s.on || !packet_is_cut(p, f->end)))
        return p == f->end;
    return (*p & 0x1f) == (f->s.on ? PACKET_TIP : PACKET_PGE);
}
