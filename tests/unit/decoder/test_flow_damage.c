/* Traces that are damaged, cut or come in pieces. */
#include "flow_script.h"

#include "decoder/event/event.h"

static void a_broken_packet_costs_up_to_the_next_psb(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0xff, 0xe0);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip, 0x1000);
    size_t bad = script_size(s);
    put_ip(s, ppt_tip, 0x1000);
    put_tnt(s, "T");
    put_psb(s, 0x1000, 0);
    put_tnt(s, "TN");
    s->trace[bad] = 0x02; /* no packet begins so */
    s->trace[bad + 1] = 0xff;
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "jcc 1000 1002 not\n"
                     "gap 5\n"
                     "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "jcc 1000 1002 not\n");
    assert_int_equal(s->counts.errors, 1);
}

/* First behind a PSB+, and within one. */
static void a_time_packet_with_reserved_bits_is_a_broken_packet(void **state)
{
    struct script *s = *state;
    struct pt_packet tma = {.type = ppt_tma, .payload.tma = {.ctc = 0x34, .fc = 0x15}};
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 10000);
    put(s, tma);
    s->trace[script_size(s) - 1] |= 0xd0;
    put_tnt(s, "TT");
    script_expect(s, "gap 5\n");
    s->trace[script_size(s) - 2] = 0; /* the TNT packet becomes padding, and another bit is wrong */
    s->trace[script_size(s) - 1] = 0;
    s->trace[script_size(s) - 4] |= 0x3d;
    script_expect(s, "gap 5\n");
    put_psb(s, 0x1000, 20000);
    put_tnt(s, "T");
    put_tnt(s, "N");
    script_expect(s, "gap 5\non 0 1000\njcc 1000 1000\njcc 1000 1002 not\n");
    put_plain(s, ppt_psb);
    put_tsc(s, 30000);
    put(s, tma);
    s->trace[script_size(s) - 1] |= 0x02;
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_fup, 0x1000);
    put_plain(s, ppt_psbend);
    put_tnt(s, "T");
    put_psb(s, 0x1000, 40000);
    put_tnt(s, "N");
    assert_int_equal(script_run(s), 0);
    assert_non_null(strstr(s->text.at, "gap 5\non 0 1000\njcc 1000 1002 not\n"));
    assert_int_equal(s->counts.errors, 2);
}

/* What looks ahead for the time that cycles cannot pass goes on behind the damage at the next PSB, not within
 * it. */
static void cycles_before_a_broken_psb_are_not_held_back_by_it(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 10000);
    put_plain(s, ppt_psb);
    put_tsc(s, 10000);
    put_cyc(s, 10);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_fup, 0x1000);
    put_plain(s, ppt_psbend);
    put_tnt(s, "T");
    put_tnt(s, "N");
    put_plain(s, ppt_psb);
    s->trace[script_size(s) - 4] = 0;
    put_tsc(s, 10000);
    script_expect(s, "on 0 1000\njcc 1000 1000\ngap 5\n");
    assert_int_equal(s->counts.last_time, 10010);
}

/* libipt tells nothing of a PSB+ that is followed by damage, with no branch between: not its time either. */
static void a_psb_directly_before_damage_gives_no_time(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 10000);
    put_psb(s, 0x1000, 20000);
    put_cyc(s, 10);
    size_t bad = script_size(s);
    put_tnt(s, "TTTTTTTT");
    s->trace[bad + 1] = 0xff;
    script_expect(s, "gap 5\n");
    assert_int_equal(s->counts.last_time, 10000);
    s->trace[bad + 1] = 0xa3; /* a long TNT packet: whole */
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->counts.errors, 0);
    assert_int_equal(s->counts.last_time, 20010);
}

/* libipt can go past a PSB+ that is followed by damage, but cannot be set to it again: the gap is told all
 * the same. */
static void a_packet_of_reserved_form_behind_a_psb_is_told(void **state)
{
    struct script *s = *state;
    s->config.family = 6;
    s->config.model = 0x5e;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 10000);
    put_psb(s, 0x1000, 20000);
    s->cut = script_size(s) + 1;
    s->trace[s->cut - 1] = 0xa1; /* TIP.PGD, IPBytes 5 */
    script_expect(s, "gap 5\n");
    assert_int_equal(s->counts.errors, 1);
}

/* That event alone tells libipt's walk of the time there. */
static void a_psb_without_a_mode_gives_no_time(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 10000);
    put_tnt(s, "T");
    for (int i = 1; i < 4; i++) {
        put_plain(s, ppt_psb);
        put_tsc(s, 10000 + 1000 * (uint64_t)i);
        put_ip(s, ppt_fup, 0x1000);
        put_plain(s, ppt_psbend);
        if (i == 2)
            put_tnt(s, "T");
    }
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->counts.errors, 0);
}

/* Nor does it tell libipt's walk of the place, where the trace ends there: the instructions before it are not
 * counted. */
static void a_psb_without_a_mode_at_the_end_is_no_place(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x90, 0x75, 0xfd);
    put_psb(s, 0x1000, 10000);
    put_tnt(s, "T");
    put_plain(s, ppt_psb);
    put_ip(s, ppt_fup, 0x1001);
    put_plain(s, ppt_psbend);
    script_expect(s, "on 0 1000\njcc 1001 1000\n");
    assert_int_equal(s->counts.instructions, 2);
}

static void a_bus_ratio_of_0_is_a_broken_packet(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 10000);
    put(s, (struct pt_packet){.type = ppt_cbr, .payload.cbr.ratio = 0});
    put_tnt(s, "TT");
    script_expect(s, "gap 5\n");
}

static void an_empty_or_senseless_trace_is_nothing(void **state)
{
    struct script *s = *state;
    struct dec_piece piece = {.bytes = s->trace, .size = 0};
    assert_int_equal(script_run_pieces(s, &piece, 1), 0);
    assert_int_equal(s->events.n, 0);
    assert_int_equal(script_run_pieces(s, NULL, 0), 0);
    memset(s->trace, 0xa5, 4096);
    piece.size = 4096;
    assert_int_equal(script_run_pieces(s, &piece, 1), 0);
    assert_int_equal(s->events.n, 0);
    assert_int_equal(s->counts.bytes, 4096);
}

/* However a trace ends, what was decoded before stays as it was. */
static void a_trace_cut_anywhere_is_a_beginning_of_the_whole(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0x02, 0xff, 0xe0, 0x0f, 0x05, 0xe8, 0xf5, 0xff, 0xff,
                0xff); /* jne 1004; jmp; syscall; call 1000 */
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "TN");
    for (int i = 0; i < 20; i++) {
        put_tnt(s, "N");
        put_tsc(s, 2000 + (uint64_t)i);
        put_ip(s, ppt_tip, 0x1000);
        put_tnt(s, "T");
        put_ip(s, ppt_tip_pgd, 0);
        put_mode(s, ptem_64bit);
        put_ip(s, ppt_tip_pge, 0x1000);
        put_psb(s, 0x1000, 3000 + (uint64_t)i);
    }
    assert_int_equal(script_run(s), 0);
    char *whole = strdup(s->text.at);
    assert_non_null(whole);
    for (s->cut = 1; s->cut < script_size(s); s->cut++) {
        assert_int_equal(script_run(s), 0);
        assert_memory_equal(s->text.at, whole, strlen(s->text.at));
    }
    free(whole);
}

static void pieces_that_follow_on_are_one_trace(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0xff, 0xe0);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "TTTN");
    put_ip(s, ppt_tip, 0x1000);
    put_tnt(s, "N");
    size_t size = script_size(s), half = size - 5; /* within the TIP */
    struct dec_piece pieces[] = {{.bytes = s->trace, .size = half, .offset = 4096},
                                 {.bytes = s->trace + half, .size = size - half, .offset = 4096 + half}};
    script_expect(s, "on 0 1000\njcc 1000 1000\njcc 1000 1000\njcc 1000 1000\njcc 1000 1002 not\n"
                     "jmp 1002 1000 ind\njcc 1000 1002 not\n");
    char *whole = strdup(s->text.at);
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, whole);
    free(whole);
}

static void lost_bytes_between_pieces_are_a_gap(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "T");
    size_t size = script_size(s);
    struct dec_piece pieces[] = {{.bytes = s->trace, .size = size},
                                 {.bytes = s->trace, .size = size, .offset = size + 8}};
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, "on 0 1000\njcc 1000 1000\ngap 9\non 0 1000\njcc 1000 1000\n");
    pieces[1].offset = size;
    pieces[1].truncated = true;
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, "on 0 1000\njcc 1000 1000\ngap 9\non 0 1000\njcc 1000 1000\n");
    assert_int_equal(s->counts.errors, 0);
}

/* The first time is not earlier than it was, whichever walk met it and whether events or counts are wanted.
 */
static void time_that_goes_back_behind_a_loss_stands_still(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 0); /* without a time */
    put_tnt(s, "T");
    put_psb(s, 0x1000, 0);
    put_tsc(s, 20000);
    put_tnt(s, "T");
    put_psb(s, 0x1000, 0);
    put_tnt(s, "T");
    size_t first = script_size(s);
    put_psb(s, 0x1000, 10000);
    put_tnt(s, "T");
    struct dec_piece pieces[] = {
        {.bytes = s->trace, .size = first},
        {.bytes = s->trace + first, .size = script_size(s) - first, .offset = first, .truncated = true}};
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_int_equal(s->counts.first_time, s->counts.last_time);
}

/* Snapshots of an overwritten ring: the second begins before the first ended. */
static void snapshots_that_overlap_are_decoded_once(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "TT");
    size_t second = script_size(s);
    put_psb(s, 0x1000, 2000);
    put_tnt(s, "T");
    size_t first_end = script_size(s);
    put_tnt(s, "TT");
    put_psb(s, 0x1000, 3000);
    put_tnt(s, "N");
    size_t size = script_size(s);
    s->snapshot = true;
    assert_int_equal(script_run(s), 0);
    char *whole = strdup(s->text.at);
    struct dec_piece pieces[] = {{.bytes = s->trace, .size = first_end},
                                 {.bytes = s->trace + second - 1, .size = size - second + 1}};
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, whole);
    assert_int_equal(s->counts.bytes, size);
    /* the second holds nothing that the first did not have */
    pieces[0].size = size;
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, whole);
    /* they do not touch: a gap */
    pieces[0].size = second;
    pieces[1] = (struct dec_piece){.bytes = s->trace + first_end, .size = size - first_end};
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at,
                        "on 0 1000\njcc 1000 1000\njcc 1000 1000\ngap 7\non 0 1000\njcc 1000 1002 not\n");
    free(whole);
}

static void an_overwritten_ring_begins_with_a_gap(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    s->overwritten = true;
    put_psb(s, 0x1000, 1234);
    put_tnt(s, "N");
    script_expect(s, "gap 7\non 0 1000\njcc 1000 1002 not\n");
    assert_int_equal(s->events.at[0].time, 1234);
}

/* What is missing ends with the PSB+, whose time its place has, and not as late as the next packet with a
 * time allows. */
static void an_overwritten_ring_begins_at_its_first_psb(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    s->overwritten = true;
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "T");
    put_tsc(s, 2000);
    put_tnt(s, "T");
    script_expect(s, "gap 7\non 0 1000\njcc 1000 1000\njcc 1000 1000\n");
    assert_int_equal(s->events.at[0].time, 1000);
    assert_int_equal(s->events.at[1].time, 1000);
    assert_true(s->events.at[1].flags & DEC_TIME_EXACT);
    assert_in_range(s->events.at[2].time, 1001, 1999);
}

/* Bytes that begin no packet, or a packet of the CPU's that says that it lost some. */
static void put_damage(struct script *s, bool overflow)
{
    size_t at = script_size(s);
    if (overflow) {
        put_plain(s, ppt_ovf);
        return;
    }
    put_plain(s, ppt_pad);
    put_plain(s, ppt_pad);
    s->trace[at] = s->trace[at + 1] = 0x02;
}

static uint64_t time_of(const struct script *s, size_t i, enum dec_kind kind)
{
    assert_true(i < s->events.n);
    assert_int_equal(s->events.at[i].kind, kind);
    return s->events.at[i].time;
}

/* Damage before a PSB+, and more behind it before anything was decoded there: the place that it tells does
 * not stay open, and what is missing is one gap, or two that follow on. */
static void damage_behind_a_psb_goes_on_with_that_before_it(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 10000);
    put_tnt(s, "T");
    put_tnt(s, "T"); /* libipt reads ahead and loses this one */
    put_damage(s, false);
    put_psb(s, 0x1000, 20000);
    put_damage(s, false);
    put_psb(s, 0x1000, 30000);
    put_tnt(s, "T");
    script_expect(s, "on 0 1000\njcc 1000 1000\ngap 5\non 0 1000\njcc 1000 1000\n");
    assert_in_range(time_of(s, 2, DEC_GAP), 10000, 20000);
    assert_int_equal(time_of(s, 3, DEC_ENABLE), 30000);
    assert_int_equal(s->counts.gaps, 1);
}

static void an_overflow_behind_a_psb_follows_on_damage_before_it(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 10000);
    put_tnt(s, "T");
    put_tnt(s, "T");
    put_damage(s, false);
    put_psb(s, 0x1000, 20000);
    put_damage(s, true);
    put_ip(s, ppt_fup, 0x1000);
    put_tnt(s, "T");
    script_expect(s, "on 0 1000\njcc 1000 1000\ngap 5\non 0 1000\ngap 1\non 0 1000\njcc 1000 1000\n");
    assert_in_range(time_of(s, 2, DEC_GAP), 10000, 20000);
    assert_int_equal(time_of(s, 3, DEC_ENABLE), 20000);
    assert_int_equal(s->counts.gaps, 2);
    assert_int_equal(s->counts.overflows, 1);
}

/* Another thread from 20000 on. */
static int where_changes(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    struct script *s = ctx;
    bool later = time >= 20000;
    (void)ring;
    *where = (struct dec_where){
        .pid = 7, .tid = later ? 9 : 8, .cpu = 3, .space = s->space, .until = later ? UINT64_MAX : 20000};
    return 0;
}

/* A place was told already when it turns out that nothing can be decoded there, as before: it ends. */
static void a_place_that_was_told_ends_in_a_gap_of_its_own(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    s->where = where_changes;
    put_psb(s, 0x1000, 10000);
    put_tnt(s, "T");
    put_tsc(s, 20000);
    put_ip(s, ppt_tip, 0x1000); /* but there is a conditional jump */
    put_ip(s, ppt_tip, 0x1000);
    put_tnt(s, "T");
    script_expect(s, "on 0 1000\njcc 1000 1000\ngap 3\non 0 1000\ngap 3\non 0 1000\njcc 1000 1000\n");
    assert_int_equal(s->counts.gaps, 1);
}

/* Instructions took long at first. What ran before the damage is not told later than the next packet that
 * tells a time, and that one's time holds. */
static void damage_is_not_later_than_the_time_behind_it(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 10000);
    for (int i = 0; i < 20; i++)
        put_tnt(s, "TTTTTT");
    put_tsc(s, 10000 + 120 * 1000);
    put_tnt(s, "TTTTTT"); /* the last bit of this one is at that time */
    put_tnt(s, "TTTTTT");
    put_tnt(s, "T");
    put_damage(s, false);
    put_psb(s, 0x1000, 10000 + 120 * 1000 + 3000);
    put_tnt(s, "T");
    assert_int_equal(script_run(s), 0);
    assert_in_range(time_of(s, 129, DEC_COND_JUMP), 130001, 132999);
    assert_int_equal(time_of(s, 133, DEC_GAP), 133000);
    assert_int_equal(time_of(s, 134, DEC_ENABLE), 133000);
    assert_true(s->events.at[134].flags & DEC_TIME_EXACT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(a_broken_packet_costs_up_to_the_next_psb),
        SCRIPT_TEST(a_time_packet_with_reserved_bits_is_a_broken_packet),
        SCRIPT_TEST(cycles_before_a_broken_psb_are_not_held_back_by_it),
        SCRIPT_TEST(a_psb_directly_before_damage_gives_no_time),
        SCRIPT_TEST(a_packet_of_reserved_form_behind_a_psb_is_told),
        SCRIPT_TEST(a_psb_without_a_mode_gives_no_time),
        SCRIPT_TEST(a_psb_without_a_mode_at_the_end_is_no_place),
        SCRIPT_TEST(a_bus_ratio_of_0_is_a_broken_packet),
        SCRIPT_TEST(an_empty_or_senseless_trace_is_nothing),
        SCRIPT_TEST(a_trace_cut_anywhere_is_a_beginning_of_the_whole),
        SCRIPT_TEST(pieces_that_follow_on_are_one_trace),
        SCRIPT_TEST(lost_bytes_between_pieces_are_a_gap),
        SCRIPT_TEST(time_that_goes_back_behind_a_loss_stands_still),
        SCRIPT_TEST(snapshots_that_overlap_are_decoded_once),
        SCRIPT_TEST(an_overwritten_ring_begins_with_a_gap),
        SCRIPT_TEST(an_overwritten_ring_begins_at_its_first_psb),
        SCRIPT_TEST(damage_behind_a_psb_goes_on_with_that_before_it),
        SCRIPT_TEST(an_overflow_behind_a_psb_follows_on_damage_before_it),
        SCRIPT_TEST(a_place_that_was_told_ends_in_a_gap_of_its_own),
        SCRIPT_TEST(damage_is_not_later_than_the_time_behind_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
