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

/* Moves the pass forward to the packet at `at`, or behind it: from the last PSB before that if there is one
 * that was not looked for yet, from *seen on. All together in time linear in the run. */
static bool move_to(struct pass *pass, size_t at, size_t *seen)
{
    const struct pt_run *run = pass->run;
    size_t last = pass->at;
    for (size_t psb; (psb = pt_find_psb(run->bytes, at, *seen)) < at; *seen = psb + 1)
        last = psb;
    *seen = at > PSB_SIZE ? at - PSB_SIZE : 0;
    bool more = last <= pass->at || sync_pass(pass, last);
    while (more && pass->at < at)
        more = next_packet(pass);
    return more;
}

/* The first CFE or EVD packet; size: none. Most runs have none, and few bytes that look like one. */
static size_t find_event_trace(const struct pt_run *run)
{
    struct pass pass;
    const uint8_t *end = run->bytes + run->size;
    bool more = begin_pass(&pass, run, 0);
    size_t seen = pass.at + 1;
    for (const uint8_t *p = run->bytes + pass.at; more && p < end; p++) {
        p = memchr(p, PACKET_EXTENDED, (size_t)(end - p));
        if (!p || p + 1 == end)
            return run->size;
        size_t at = (size_t)(p - run->bytes);
        if (!is_of_event_trace(p) || at < pass.at)
            continue;
        more = move_to(&pass, at, &seen);
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

/* Most hosts tell so in their first PSB+. */
enum { HEADERS = 64 };

/* Whether a PIP of the first PSB+ is NR=0; *guest: one is NR=1. */
static bool begins_in_host(const struct pt_run *run, bool *guest)
{
    struct pass pass;
    unsigned headers = 0;
    bool more = begin_pass(&pass, run, 0);
    while (more && headers < HEADERS) {
        const uint8_t *p = run->bytes + pass.at;
        if (is_extended(p, EXTENDED_PIP) && !(p[2] & 1))
            return true;
        *guest |= is_extended(p, EXTENDED_PIP);
        headers += !pass.header;
        more = pass.header ? next_packet(&pass) : sync_pass(&pass, pass.at + 1);
    }
    return false;
}

bool pt_run_has_guests(const struct pt_run *run)
{
    struct pass pass;
    bool guest = false;
    if (begins_in_host(run, &guest) || !guest)
        return true;
    for (bool more = begin_pass(&pass, run, 0); more; more = next_packet(&pass)) {
        const uint8_t *p = run->bytes + pass.at;
        if (is_extended(p, EXTENDED_PIP) && !(p[2] & 1))
            return true;
    }
    return false;
}
