/* The packet encoder: its bytes, and what libipt's packet decoder reads from them. */
#include "recorder/sources/step/ptenc.h"

#include <intel-pt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    RING = 1 << 20,
};

struct fixture {
    uint8_t data[RING];

    struct ptenc_ring ring;

    struct ptenc enc;
};

static struct fixture *begin(bool ret_compression, uint32_t psb_period)
{
    const struct ptenc_config config = {.ret_compression = ret_compression, .psb_period = psb_period};
    struct fixture *f = test_calloc(1, sizeof(*f));

    f->ring = (struct ptenc_ring){.data = f->data, .size = RING};
    ptenc_init(&f->enc, &f->ring, &config);
    return f;
}

/* The bytes written since `from` are exactly these. */
#define assert_bytes(f, from, ...)                                                                           \
    do {                                                                                                     \
        const uint8_t want_[] = {__VA_ARGS__};                                                               \
        assert_int_equal((f)->ring.head - (from), sizeof(want_));                                            \
        assert_memory_equal((f)->data + (from), want_, sizeof(want_));                                       \
    } while (0)

static uint64_t enabled_at(struct fixture *f, uint64_t ip)
{
    ptenc_time(&f->enc, 1000);
    ptenc_enable(&f->enc, ip, PTENC_MODE_64);
    return f->ring.head;
}

/* The expected bytes are those of the real driver's traces of an emulated processor (PSB+, MODE.Exec 99 01,
 * TIP.PGE 71). */
static void begins_with_psb(void **state)
{
    struct fixture *f = begin(true, 0);

    (void)state;
    ptenc_time(&f->enc, 0x2f83fb9dd8);
    ptenc_enable(&f->enc, 0x7fa89af93b70, PTENC_MODE_64);
    assert_bytes(f, 0, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, /* PSB */
                 0x19, 0xd8, 0x9d, 0xfb, 0x83, 0x2f, 0, 0, 2, 0x23,  /* TSC, PSBEND */
                 0x99, 1, 0x71, 0x70, 0x3b, 0xf9, 0x9a, 0xa8, 0x7f); /* MODE.Exec, TIP.PGE */
    test_free(f);
}

static void compresses_ips(void **state)
{
    struct fixture *f = begin(true, 0);
    uint64_t at = enabled_at(f, 0x7fa89af93b70);

    (void)state;
    ptenc_indirect(&f->enc, 0x7fa89af947ad);
    assert_bytes(f, at, 0x2d, 0xad, 0x47);
    at = f->ring.head;
    ptenc_indirect(&f->enc, 0x7fa89b0047ad);
    assert_bytes(f, at, 0x4d, 0xad, 0x47, 0x00, 0x9b);
    at = f->ring.head;
    ptenc_indirect(&f->enc, 0x401000);
    assert_bytes(f, at, 0x6d, 0x00, 0x10, 0x40, 0, 0, 0);
    at = f->ring.head;
    ptenc_indirect(&f->enc, 0xffffffffff600000);
    assert_bytes(f, at, 0x6d, 0x00, 0x00, 0x60, 0xff, 0xff, 0xff);
    at = f->ring.head;
    ptenc_indirect(&f->enc, 0x00ff123456789abc); /* a 57-bit address does not fit into 48 */
    assert_bytes(f, at, 0xcd, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12, 0xff, 0x00);
    test_free(f);
}

static void packs_tnt(void **state)
{
    static const bool bits[] = {0, 1, 0, 1, 0, 0, 1};
    struct fixture *f = begin(true, 0);
    uint64_t at = enabled_at(f, 0x1000);

    (void)state;
    for (size_t i = 0; i < 6; i++)
        ptenc_cond(&f->enc, bits[i], 0x1000 + i);
    assert_bytes(f, at, 0xa8);
    ptenc_cond(&f->enc, bits[6], 0x1010);
    assert_int_equal(f->ring.head - at, 1); /* waits for more */
    at = f->ring.head;
    ptenc_disable_async(&f->enc, 0x1010);
    assert_bytes(f, at, 0x06, 0x3d, 0x10, 0x10, 0x01);
    assert_false(ptenc_enabled(&f->enc));
    test_free(f);
}

static void leaves_and_comes_back(void **state)
{
    struct fixture *f = begin(true, 0);
    uint64_t at = enabled_at(f, 0x1000);

    (void)state;
    ptenc_cond(&f->enc, true, 0x1010);
    ptenc_disable(&f->enc);
    ptenc_disable(&f->enc);
    ptenc_disable_async(&f->enc, 1);
    assert_bytes(f, at, 0x06, 0x01);
    at = f->ring.head;
    ptenc_enable(&f->enc, 0x1012, PTENC_MODE_64);
    assert_bytes(f, at, 0x99, 1, 0x31, 0x12, 0x10);
    at = f->ring.head;
    ptenc_far(&f->enc, 0x2000, PTENC_MODE_32);
    assert_bytes(f, at, 0x99, 2, 0x2d, 0x00, 0x20);
    test_free(f);
}

static void compresses_returns(void **state)
{
    struct fixture *f = begin(true, 0);
    uint64_t at = enabled_at(f, 0x1000);

    (void)state;
    ptenc_call(&f->enc, 0x1005);
    ptenc_call(&f->enc, 0x1105);
    ptenc_ret(&f->enc, 0x1105);
    ptenc_ret(&f->enc, 0x1005);
    assert_int_equal(f->ring.head, at);
    ptenc_ret(&f->enc, 0x3000); /* nobody called */
    assert_bytes(f, at, 0x0e, 0x2d, 0x00, 0x30);
    test_free(f);
}

/* After a return that went elsewhere decoders do not agree on what is left of the calls: none of them may be
 * relied on. */
static void forgets_calls_after_a_mismatch(void **state)
{
    struct fixture *f = begin(true, 0);
    uint64_t at = enabled_at(f, 0x1000);

    (void)state;
    ptenc_call(&f->enc, 0x1005);
    ptenc_call(&f->enc, 0x1105);
    ptenc_ret(&f->enc, 0x3000);
    ptenc_ret(&f->enc, 0x1005);
    assert_bytes(f, at, 0x2d, 0x00, 0x30, 0x2d, 0x05, 0x10);
    test_free(f);
}

static void keeps_64_calls(void **state)
{
    struct fixture *f = begin(true, 0);
    uint64_t at = enabled_at(f, 0x1000);

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        ptenc_call(&f->enc, 0x10000 + i);
    for (unsigned i = 100; i-- > 36;)
        ptenc_ret(&f->enc, 0x10000 + i);
    assert_int_equal(f->ring.head - at, 64 / 6);
    ptenc_ret(&f->enc, 0x10000 + 35);
    assert_int_equal(f->data[f->ring.head - 5], 0x4d);
    test_free(f);
}

static void writes_every_return_without_compression(void **state)
{
    struct fixture *f = begin(false, 0);
    uint64_t at = enabled_at(f, 0x1000);

    (void)state;
    ptenc_call(&f->enc, 0x1005);
    ptenc_ret(&f->enc, 0x1005);
    assert_bytes(f, at, 0x2d, 0x05, 0x10);
    test_free(f);
}

static void forgets_at_psb(void **state)
{
    struct fixture *f = begin(true, 64);
    uint64_t at;

    (void)state;
    enabled_at(f, 0x401000);
    ptenc_call(&f->enc, 0x401005);
    while (f->enc.since_psb + 3 < 64)
        ptenc_indirect(&f->enc, 0x401000);
    at = f->ring.head;
    ptenc_indirect(&f->enc, 0x401234);
    assert_bytes(f, at, 0x2d, 0x34, 0x12, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2,
                 0x82, 0x19, 0xe8, 3, 0, 0, 0, 0, 0, 0x99, 1, 0x7d, 0x34, 0x12, 0x40, 0, 0, 0, 2, 0x23);
    at = f->ring.head;
    ptenc_ret(&f->enc, 0x401005);
    assert_bytes(f, at, 0x2d, 0x05, 0x10);
    test_free(f);
}

/* ------------------------------------------------------------------ */

/* What was told to the encoder, one entry a packet or a TNT bit, against libipt's packet decoder. */
struct told {
    enum pt_packet_type type;

    uint64_t value; /* an address, a time, or a TNT bit */
};

enum {
    TOLD = 20000,
};

static size_t tell_at_random(struct fixture *f, struct told *told)
{
    static const uint64_t places[] = {0x401000, 0x7fa89af93000, 0x7fa89b000000, 0x7ffd12345000,
                                      0xffffffffff600000};
    uint64_t time = 1;
    size_t n = 0;

    srand(7);
    ptenc_time(&f->enc, time); /* in the PSB+ */
    while (n < TOLD) {
        uint64_t ip = places[(unsigned)rand() % 5] + (unsigned)rand() % 0x800;

        if (!ptenc_enabled(&f->enc)) {
            ptenc_enable(&f->enc, ip, PTENC_MODE_64);
            told[n++] = (struct told){ppt_tip_pge, ip};
            continue;
        }
        switch ((unsigned)rand() % 12) {
        case 0:
            ptenc_disable(&f->enc);
            told[n++] = (struct told){ppt_tip_pgd, 0};
            break;
        case 1:
            ptenc_disable_async(&f->enc, ip);
            told[n++] = (struct told){ppt_fup, ip};
            told[n++] = (struct told){ppt_tip_pgd, 0};
            break;
        case 2: /* while enabled always a packet of its own */
            time += (unsigned)rand();
            ptenc_time(&f->enc, time);
            told[n++] = (struct told){ppt_tsc, time};
            break;
        case 3:
        case 4:
            ptenc_indirect(&f->enc, ip);
            told[n++] = (struct told){ppt_tip, ip};
            break;
        default:
            told[n] = (struct told){ppt_tnt_8, (unsigned)rand() % 2};
            ptenc_cond(&f->enc, told[n].value, ip);
            n++;
        }
    }
    return n;
}

static uint64_t full_ip(uint64_t *last, const struct pt_packet_ip *packet)
{
    switch (packet->ipc) {
    case pt_ipc_update_16:
        *last = (*last & ~0xffffull) | packet->ip;
        break;
    case pt_ipc_update_32:
        *last = (*last & ~0xffffffffull) | packet->ip;
        break;
    case pt_ipc_sext_48:
        *last = (uint64_t)((int64_t)(packet->ip << 16) >> 16);
        break;
    case pt_ipc_full:
        *last = packet->ip;
        break;
    default:
        break;
    }
    return *last;
}

static void libipt_reads_what_was_told(void **state)
{
    struct fixture *f = begin(true, 256);
    struct told *told = test_calloc(TOLD + 2, sizeof(*told));
    size_t n = tell_at_random(f, told), at = 0;
    struct pt_packet_decoder *decoder;
    struct pt_packet p;
    struct pt_config config;
    uint64_t last = 0;
    bool psb = false;
    unsigned psbs = 0;

    (void)state;
    assert_true(f->ring.head < f->ring.size);
    pt_config_init(&config);
    config.begin = f->data;
    config.end = f->data + f->ring.head;
    decoder = pt_pkt_alloc_decoder(&config);
    assert_int_equal(pt_pkt_sync_set(decoder, 0), 0);
    while (pt_pkt_next(decoder, &p, sizeof(p)) > 0) {
        if (p.type == ppt_psb) {
            psb = true;
            psbs++;
            last = 0;
        } else if (p.type == ppt_psbend) {
            psb = false;
        } else if (p.type == ppt_mode || (psb && p.type == ppt_tsc)) {
            continue;
        } else if (psb) {
            assert_int_equal(p.type, ppt_fup);
            assert_true(full_ip(&last, &p.payload.ip) != 0);
        } else if (p.type == ppt_tnt_8) {
            for (int bit = p.payload.tnt.bit_size; bit--;) {
                assert_int_equal(told[at].type, ppt_tnt_8);
                assert_int_equal(told[at++].value, p.payload.tnt.payload >> bit & 1);
            }
        } else {
            assert_int_equal(told[at].type, p.type);
            if (p.type == ppt_tsc)
                assert_int_equal(told[at].value, p.payload.tsc.tsc);
            else if (p.type != ppt_tip_pgd)
                assert_int_equal(told[at].value, full_ip(&last, &p.payload.ip));
            at++;
        }
    }
    /* The last few TNT bits may still wait for company. */
    assert_true(at <= n && n - at < 6);
    assert_true(psbs > 50);
    pt_pkt_free_decoder(decoder);
    test_free(told);
    test_free(f);
}

/* The newest bytes of a ring that wrapped are those of a ring that did not. */
static void wraps(void **state)
{
    struct fixture *big = begin(true, 0), *small = begin(true, 0);
    struct told *told = test_calloc(TOLD + 2, sizeof(*told));
    enum {
        SIZE = 5000 /* no power of two */
    };

    (void)state;
    small->ring.size = SIZE;
    tell_at_random(big, told);
    tell_at_random(small, told);
    assert_int_equal(big->ring.head, small->ring.head);
    assert_true(small->ring.head > 2 * SIZE);
    for (uint64_t i = small->ring.head - SIZE; i < small->ring.head; i++)
        assert_int_equal(small->data[i % SIZE], big->data[i]);
    assert_int_equal(small->data[SIZE], 0);
    test_free(told);
    test_free(small);
    test_free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_with_psb),
        cmocka_unit_test(compresses_ips),
        cmocka_unit_test(packs_tnt),
        cmocka_unit_test(leaves_and_comes_back),
        cmocka_unit_test(compresses_returns),
        cmocka_unit_test(forgets_calls_after_a_mismatch),
        cmocka_unit_test(keeps_64_calls),
        cmocka_unit_test(writes_every_return_without_compression),
        cmocka_unit_test(forgets_at_psb),
        cmocka_unit_test(libipt_reads_what_was_told),
        cmocka_unit_test(wraps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
