/* The words for events. */
#include "decoder/event/event.h"

#include <stdio.h>

const char *dec_gap_name(enum dec_gap reason)
{
    static const char *const names[] = {
        [DEC_GAP_OVERFLOW] = "overflow",
        [DEC_GAP_NO_IMAGE] = "no image",
        [DEC_GAP_MISMATCH] = "mismatch",
        [DEC_GAP_TRUNCATED] = "truncated",
        [DEC_GAP_BAD_PACKET] = "bad packet",
        [DEC_GAP_NOT_ATTACHED] = "not attached",
        [DEC_GAP_OVERWRITTEN] = "overwritten",
        [DEC_GAP_PAUSED] = "paused",
        [DEC_GAP_LOST] = "lost",
        [DEC_GAP_STALE_FILE] = "stale file",
        [DEC_GAP_JIT] = "code without a file",
        [DEC_GAP_CPU] = "cpu not recorded",
        [DEC_GAP_THROTTLED] = "throttled",
        [DEC_GAP_NOT_SAMPLED] = "not sampled",
        [DEC_GAP_LEFT_OUT] = "left out",
        [DEC_GAP_NO_RING] = "no ring",
    };

    return (size_t)reason < sizeof(names) / sizeof(names[0]) && names[reason] ? names[reason] : "?";
}

/* A list of those that are set. */
static const char *wake_of(unsigned wake, char *buf, size_t size)
{
    static const char *const names[] = {"an interrupt", "a store to what it watched", "the hardware"};
    size_t n = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]) && n < size; i++)
        if (wake >> i & 1)
            n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " and " : ", by ", names[i]);
    return buf;
}

const char *dec_power_text(uint64_t arg, char *text, size_t size)
{
    uint32_t value = DEC_POWER_VALUE(arg);
    char wake[80];

    text[0] = '\0';
    switch (DEC_POWER_WHAT(arg)) {
    case DEC_POWER_MWAIT:
        snprintf(text, size, "MWAIT 0x%02x", value);
        return "mwait";
    case DEC_POWER_STOPPED:
        return "stopped";
    case DEC_POWER_ENTRY:
        snprintf(text, size, "MWAIT 0x%02x%s", value & 0xff, value & 256 ? ", by the hardware" : "");
        return "asleep";
    case DEC_POWER_EXIT:
        snprintf(text, size, "deepest MWAIT 0x%02x, last 0x%02x%s", value >> 8 & 0xff, value & 0xff,
                 wake_of(value >> 16, wake, sizeof(wake)));
        return "awake";
    }
    return "power";
}
