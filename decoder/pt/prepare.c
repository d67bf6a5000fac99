/* Passes over a run's packets without walking code. */
#include "decoder/pt/prepare.h"

#include "decoder/pt/packet_rare.h"

#include <stdlib.h>
#include <string.h>

/* A pass over packets from the first PSB on, and on from the next one where a packet cannot be read. */
struct pass {
    const struct pt_run *run;

    size_t at, size; /* of the packet */

    bool header; /* it is in a PSB+ */
};

static bool is_extended(const uint8_t *p, uint8_t which)
{
    return *p == PACKET_EXTENDED && p[1] == which;
}

static bool sync_pass(struct pass *pass, size_t from)
{
    pass->at = pt_find_psb(pass->run->bytes, pass->run->size, from);
    pass->size = PSB_SIZE;
    pass->header = true;
    return pass->at < pass->run->size;
}

static bool begin_pass(struct pass *pass, const struct pt_run *run, size_t from)
{
    *pass = (struct pass){.run = run};
    return sync_pass(pass, from);
}

static bool next_packet(struct pass *pass)
{
    const uint8_t *p = pass->run->bytes + pass->at, *end = pass->run->bytes + pass->run->size;
    if (is_extended(p, EXTENDED_PSBEND) || is_extended(p, EXTENDED_OVF))
        pass->header = false;
    p += pass->size;
    size_t size = packet_any_size(p, end), at = (size_t)(p - pass->run->bytes);
    if (size == 0)
        return sync_pass(pass, at < pass->run->size ? at + 1 : at);
    pass->at = at;
    pass->size = size;
    pass->header |= is_extended(p, EXTENDED_PSB);
    return true;
}

static bool is_of_event_trace(const uint8_t *p)
{
    return is_extended(p, EXTENDED_CFE) || is_extended(p, EXTENDED_EVD);
}

/* The first CFE or EVD packet; size: none. Most runs have none, and few bytes that look like one. */
static size_t find_event_trace(const struct pt_run *run)
{
    struct pass pass;
    size_t psb = pt_find_psb(run->bytes, run->size, 0);
    for (const uint8_t *p = run->bytes + psb, *end = run->bytes + run->size; p < end; p++) {
        p = memchr(p, PACKET_EXTENDED, (size_t)(end - p));
        if (!p || p + 1 == end)
            return run->size;
        if (!is_of_event_trace(p))
            continue;
        size_t at = (size_t)(p - run->bytes);
        for (size_t next; (next = pt_find_psb(run->bytes, at, psb + 1)) < at;)
            psb = next;
        bool more = begin_pass(&pass, run, psb);
        while (more && pass.at < at)
            more = next_packet(&pass);
        if (more && pass.at == at)
            return at;
    }
    return run->size;
}

/* Whether the next packet that is not about time is a FUP. */
static bool fup_follows(struct pass pass)
{
    while (next_packet(&pass)) {
        const uint8_t *p = pass.run->bytes + pass.at;
        if (!packet_is_time(p))
            return (*p & 0x1f) == PACKET_FUP;
    }
    return false;
}

static void replace(const struct pass *pass)
{
    uint8_t *p = pass->run->owned + pass->at;
    bool cfe = is_extended(p, EXTENDED_CFE), evd = is_extended(p, EXTENDED_EVD);
    bool exec = *p == PACKET_MODE && p[1] >> 5 == 0 && !pass->header && fup_follows(*pass);
    bool fup = exec || (cfe && p[2] & 0x80);
    if (!cfe && !evd && !exec)
        return;
    memset(p, PACKET_PAD, pass->size);
    if (!fup)
        return;
    p[0] = PACKET_EXTENDED;
    p[1] = EXTENDED_EXSTOP_IP;
}

int pt_take_event_trace(struct pt_run *run, bool *found, struct st_error *err)
{
    struct pass pass;
    *found = find_event_trace(run) < run->size;
    if (!*found)
        return 0;
    if (!run->owned) {
        run->owned = malloc(run->size);
        if (!run->owned)
            return st_nomem(err, "the trace of a ring");
        memcpy(run->owned, run->bytes, run->size);
        run->bytes = run->owned;
    }
    bool more = begin_pass(&pass, run, 0);
    while (more) {
        struct pass here = pass;
        more = next_packet(&pass); /* what `here` becomes has the same size */
        replace(&here);
    }
    return 0;
}

enum { NR0 = 1, NR1 = 2 };

/* What PIP packets of a pass say, in PSB+ alone or everywhere, until both were seen. */
static unsigned roots(const struct pt_run *run, bool headers)
{
    struct pass pass;
    unsigned seen = 0;
    bool more = begin_pass(&pass, run, 0);
    while (more && seen != (NR0 | NR1)) {
        const uint8_t *p = run->bytes + pass.at;
        if (is_extended(p, EXTENDED_PIP))
            seen |= p[2] & 1 ? NR1 : NR0;
        more = headers && !pass.header ? sync_pass(&pass, pass.at + 1) : next_packet(&pass);
    }
    return seen;
}

bool pt_run_has_guests(const struct pt_run *run)
{
    return roots(run, true) != NR1 || roots(run, false) != NR1;
}
