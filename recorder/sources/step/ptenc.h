/* An encoder of Intel PT packets into an overwritten ring, for sources that know the control flow by other
 * means. Source of every rule: Intel SDM volume 3, chapter "Intel Processor Trace": "IP Packets" (IP
 * compression), "Indirect Transfer Compression for Returns", "Packet Generation", "Packet Definitions". It
 * writes what a processor writes that traces user code only, with BranchEn and TSCEn set. One thread uses an
 * encoder at a time. */
#ifndef ST_RECORDER_SOURCES_STEP_PTENC_H
#define ST_RECORDER_SOURCES_STEP_PTENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PTENC_RET_STACK = 64,    /* SDM: the youngest 64 calls */
    PTENC_PSB_PERIOD = 2048, /* IA32_RTIT_CTL.PSBFreq 0 */
};

/* The mode of execution, as MODE.Exec tells it (bit 0: CS.L, bit 1: CS.D). */
enum ptenc_mode {
    PTENC_MODE_64 = 1,
    PTENC_MODE_32 = 2,
};

/* Where the packets go: the newest `size` bytes stay. Owned by the caller, who may place it in shared memory.
 */
struct ptenc_ring {
    uint8_t *data;

    size_t size;

    uint64_t head; /* bytes ever written; the next one goes to data[head % size] */
};

struct ptenc_config {
    bool ret_compression; /* as without bit NoRETComp of the event's config */

    uint32_t psb_period; /* bytes between PSB packets; 0: PTENC_PSB_PERIOD */
};

/* Private to ptenc.c, here so that it can be embedded. */
struct ptenc {
    struct ptenc_ring *ring;

    uint64_t last_ip;

    uint64_t time; /* the newest that ptenc_time() was told */

    uint64_t ret[PTENC_RET_STACK];

    uint32_t ret_top, ret_n;

    uint32_t psb_period, since_psb;

    uint8_t tnt, ntnt;

    uint8_t mode;

    bool has_last_ip, enabled, ret_compression;
};

/* An encoder with tracing off. Nothing is written yet. */
void ptenc_init(struct ptenc *e, struct ptenc_ring *ring, const struct ptenc_config *config);

/* Whether branches are being told (PacketEn). */
static inline bool ptenc_enabled(const struct ptenc *e)
{
    return e->enabled;
}

/* The time of what follows, in TSC ticks: a TSC packet; at first, and whenever it is due while not enabled, a
 * PSB+. Times must not go backwards. */
void ptenc_time(struct ptenc *e, uint64_t tsc);

/* The newest time told, 0 when none. */
static inline uint64_t ptenc_last_time(const struct ptenc *e)
{
    return e->time;
}

/* User code goes on at ip: MODE.Exec, TIP.PGE. Must not be called while enabled, nor before ptenc_time() at
 * first. */
void ptenc_enable(struct ptenc *e, uint64_t ip, enum ptenc_mode mode);

/* The instruction that just ran left user code (SYSCALL): TIP.PGD without an address. No-op while not
 * enabled. */
void ptenc_disable(struct ptenc *e);

/* User code was left before the instruction at ip ran (signal, exception, end of tracing): FUP, TIP.PGD.
 * No-op while not enabled. */
void ptenc_disable_async(struct ptenc *e, uint64_t ip);

/* The following are for use while enabled; `to` is where the program goes on. */

/* A conditional branch. */
void ptenc_cond(struct ptenc *e, bool taken, uint64_t to);

/* An indirect jump or call, or a far transfer that stays in user code: TIP. */
void ptenc_indirect(struct ptenc *e, uint64_t to);

/* As ptenc_indirect, into another mode of execution. */
void ptenc_far(struct ptenc *e, uint64_t to, enum ptenc_mode mode);

/* A near call was executed, `next` is the address behind it. Zero-length calls must not be told (SDM). An
 * indirect call is told by ptenc_indirect() too, after this. */
void ptenc_call(struct ptenc *e, uint64_t next);

/* A near return: one TNT bit where it goes behind its call, else TIP. */
void ptenc_ret(struct ptenc *e, uint64_t to);

#endif
