/* Listing several rings: in one order, within bounded memory. */
#include "decoder/cmd/decode_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RINGS = 3, EVENTS = 60000, BATCH = 500, BUDGET = 1 << 20 };

static void emit(struct decode_list *list, uint32_t ring)
{
    const struct dec_stream_info info = {.pid = 10, .tid = 100 + (int32_t)ring, .ring = ring};
    static struct dec_event events[BATCH];

    for (uint64_t at = 0; at < EVENTS; at += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++)
            events[i] = (struct dec_event){.time = (at + i) * RINGS + ring,
                                           .from = at + i + 1,
                                           .to = ring + 1,
                                           .kind = i + 1 < BATCH ? DEC_CALL : DEC_GAP,
                                           .arg = DEC_GAP_OVERFLOW};
        assert_int_equal(decode_list_emit(list, &info, events, BATCH, "lost here"), 0);
    }
}

static void rings_are_listed_in_one_order_within_a_budget(void **state)
{
    struct dec_sideband *sb = calloc(1, sizeof(*sb));
    char *text = NULL, expected[128], line[256];
    struct decode_list *list;
    struct st_spill *spill;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    assert_non_null(sb);
    assert_non_null(out);
    for (int i = 0; i < RINGS; i++)
        assert_int_equal(st_vec_push(&sb->rings, (struct dec_ring){.cpu = i}), 0);
    assert_int_equal(st_spill_new("/tmp/x", BUDGET, &spill, NULL), 0);
    assert_int_equal(decode_list_new(out, sb, true, true, spill, &list, NULL), 0);
    for (uint32_t ring = RINGS; ring-- > 0;)
        emit(list, ring);
    assert_true(st_spill_bytes(spill) > RINGS * EVENTS * sizeof(struct dec_event) - 2 * BUDGET);
    assert_int_equal(decode_list_end(list, NULL), 0);
    decode_list_free(list);
    st_spill_free(spill);
    fclose(out);
    out = fmemopen(text, size, "r");
    for (uint64_t i = 0; i < (uint64_t)RINGS * EVENTS; i++) {
        bool gap = i / RINGS % BATCH == BATCH - 1;

        snprintf(expected, sizeof(expected), "%" PRIu64 " %d 0 %" PRIx64 " %" PRIx64 " %s\n", i,
                 100 + (int)(i % RINGS), i / RINGS + 1, i % RINGS + 1,
                 gap ? "gap overflow: lost here" : "call -");
        assert_non_null(fgets(line, sizeof(line), out));
        assert_string_equal(line, expected);
    }
    assert_null(fgets(line, sizeof(line), out));
    fclose(out);
    free(text);
    st_vec_free(&sb->rings);
    free(sb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_are_listed_in_one_order_within_a_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
