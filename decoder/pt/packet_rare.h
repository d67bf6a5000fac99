/* Sizes of the packets that the fast walk leaves to libipt, and of those that libipt 2.0.5 does not know
 * either (SDM, chapter Intel Processor Trace, "Packet Definitions"; CFE and EVD are those of Event Trace). */
#ifndef ST_DECODER_PT_PACKET_RARE_H
#define ST_DECODER_PT_PACKET_RARE_H

#include "decoder/pt/fast_packet.h"

enum {
    EXTENDED_STOP = 0x83,
    EXTENDED_MNT = 0xc3,
    EXTENDED_EXSTOP = 0x62,
    EXTENDED_EXSTOP_IP = 0xe2,
    EXTENDED_MWAIT = 0xc2,
    EXTENDED_PWRE = 0x22,
    EXTENDED_PWRX = 0xa2,
    EXTENDED_CFE = 0x13,
    EXTENDED_EVD = 0x53,
    EXTENDED_PTW = 0x12, /* 5 low bits */
};

static inline size_t packet_rare_size(const uint8_t *p)
{
    if ((p[1] & 0x1f) == EXTENDED_PTW)
        return (p[1] >> 5 & 3) == 0 ? 6 : (p[1] >> 5 & 3) == 1 ? 10 : 0;
    switch (p[1]) {
    case EXTENDED_STOP:
    case EXTENDED_EXSTOP:
    case EXTENDED_EXSTOP_IP:
        return 2;
    case EXTENDED_PWRE:
    case EXTENDED_CFE:
        return 4;
    case EXTENDED_PWRX:
        return 7;
    case EXTENDED_MWAIT:
        return 10;
    case EXTENDED_MNT:
    case EXTENDED_EVD:
        return 11;
    default:
        return 0;
    }
}

/* The size of any packet; 0: it is cut off by `end`, or is none. */
static inline size_t packet_any_size(const uint8_t *p, const uint8_t *end)
{
    size_t n = packet_size(p, end);
    if (n || end - p < 2 || *p != PACKET_EXTENDED)
        return n;
    n = packet_rare_size(p);
    return n <= (size_t)(end - p) ? n : 0;
}

#endif
