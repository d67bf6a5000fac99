/* The flow of big machines and busy kernels: time is linear in the trace, whatever else there is much of. */
#include "flow_script.h"

#include <time.h>

enum {
    MANY = 3000,
    TURN = 1000, /* ns */
    MAPS = 16,
    TRIES = 3, /* the machine may be busy with others' work too */
};

typedef void make_fn(struct script *s, uint32_t n);

static struct dec_space **spaces;
static uint32_t nspaces;

/* Each process has a turn after the other. */
static int by_turns(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    struct script *s = ctx;
    uint64_t turn = time / TURN;
    (void)ring;
    *where = (struct dec_where){.pid = 7, .tid = 8, .cpu = 3, .space = s->space, .until = UINT64_MAX};
    if (nspaces) {
        where->space = spaces[turn % nspaces];
        where->until = (turn + 1) * TURN;
    }
    return 0;
}

static int count(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                 const char *detail)
{
    (void)info;
    (void)detail;
    for (size_t i = 0; i < n; i++)
        *(uint64_t *)ctx += events[i].kind == DEC_COND_JUMP;
    return 0;
}

/* ns of the processor to decode what `make` wrote, to events and to counts. */
static uint64_t cost(make_fn *make, uint32_t n, uint64_t branches)
{
    struct timespec from, to;
    struct script s;
    uint64_t found = 0;
    script_open(&s);
    make(&s, n);
    struct dec_piece piece = {.bytes = s.trace, .size = script_size(&s)};
    struct dec_flow_options options = script_options(&s);
    options.where = by_turns;
    options.emit = count;
    options.emit_ctx = &found;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    assert_int_equal(dec_flow_run(&options, &piece, 1, &s.counts, NULL), 0);
    options.emit = NULL;
    options.threads = 2;
    assert_int_equal(dec_flow_run(&options, &piece, 1, &s.counts, NULL), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    assert_int_equal(found, branches);
    assert_int_equal(s.counts.cond_jump, 2 * branches);
    assert_int_equal(s.counts.slow, 0);
    assert_int_equal(s.counts.gaps, 0);
    while (nspaces)
        dec_space_free(spaces[--nspaces]);
    free(spaces);
    spaces = NULL;
    script_close(&s);
    return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec - from.tv_nsec);
}

/* Linear gives 4, and some more for caches; quadratic 16. */
static void is_linear(make_fn *make, uint32_t n, uint64_t branches)
{
    uint64_t once = UINT64_MAX, four = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t few = cost(make, n, branches ? branches : 2ull * n);
        uint64_t more = cost(make, 4 * n, branches ? branches : 8ull * n);
        once = few < once ? few : once;
        four = more < four ? more : four;
    }
    print_message("%.1f ms, four times as many %.1f ms\n", (double)once / 1e6, (double)four / 1e6);
    assert_true(four <= 12 * once);
}

/* n turns of two branches each. */
static void put_turns(struct script *s, uint32_t n)
{
    put_psb(s, 0, 1);
    put_mode(s, ptem_64bit);
    for (uint64_t i = 1; i <= n; i++) {
        put_tsc(s, i * TURN + 1);
        put_ip(s, ppt_tip_pge, 0x1000);
        put_tnt(s, "TN");
        put_ip(s, ppt_tip_pgd, 0);
    }
}

static struct dec_image *code(struct script *s)
{
    return script_code(s, 0x1000, 0x75, 0xfe, 0xff, 0xe0); /* jne 1000; jmp *rax */
}

static void processes(struct script *s, uint32_t n)
{
    struct dec_image *image = code(s);
    spaces = calloc(n, sizeof(*spaces));
    assert_non_null(spaces);
    for (nspaces = 0; nspaces < n; nspaces++) {
        assert_int_equal(dec_space_new(NULL, &spaces[nspaces], NULL), 0);
        assert_int_equal(dec_space_map(spaces[nspaces], 0, 0x1000, 4, 0, image, NULL), 0);
    }
    put_turns(s, n);
}

static void many_processes_on_one_cpu(void **state)
{
    (void)state;
    is_linear(processes, MANY, 0);
}

/* Two processes with very many mappings take turns. */
static void mappings(struct script *s, uint32_t n)
{
    processes(s, n);
    while (nspaces > 2)
        dec_space_free(spaces[--nspaces]);
    for (uint64_t i = 0; i < MAPS * n; i++)
        for (uint32_t k = 0; k < 2; k++)
            assert_int_equal(dec_space_map(spaces[k], 0, 0x100000 + i * 0x1000, 0x1000, 0,
                                           dec_space_at(spaces[k], 0)->image, NULL),
                             0);
}

static void many_mappings_of_who_takes_turns(void **state)
{
    (void)state;
    is_linear(mappings, MANY, 0);
}

/* Code changes before each turn, elsewhere. */
static void pokes(struct script *s, uint32_t n)
{
    static const uint8_t nops[] = {0x90, 0x90};
    code(s);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(dec_space_patch(s->space, i * TURN + TURN / 2, 0x1100 + i % 64,
                                         (struct dec_code_bytes){nops, 2}, (struct dec_code_bytes){nops, 2},
                                         NULL),
                         0);
    put_turns(s, n);
}

static void many_changes_of_other_code(void **state)
{
    (void)state;
    is_linear(pokes, MANY, 0);
}

/* Tracing is off for long. */
static void headers(struct script *s, uint32_t n)
{
    code(s);
    s->config.mtc_freq = 3;
    s->config.cpuid15_eax = 2;
    s->config.cpuid15_ebx = 200;
    put_turns(s, 1);
    for (uint64_t i = 0; i < n; i++) {
        put_psb(s, 0, (i + 2) * TURN);
        put(s, (struct pt_packet){.type = ppt_mtc, .payload.mtc = {.ctc = (uint8_t)i}});
    }
}

static void many_psbs_while_tracing_is_off(void **state)
{
    (void)state;
    is_linear(headers, 2 * MANY, 2);
}

/* Times that look like packets of Event Trace, far behind the only PSB. */
static void likenesses(struct script *s, uint32_t n)
{
    code(s);
    s->config.event_trace = true;
    put_turns(s, 1);
    for (uint64_t i = 0; i < n; i++)
        put_tsc(s, 0x53021302530200 + i);
}

static void many_bytes_that_look_like_packets(void **state)
{
    (void)state;
    is_linear(likenesses, 4 * MANY, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_processes_on_one_cpu),
        cmocka_unit_test(many_mappings_of_who_takes_turns),
        cmocka_unit_test(many_changes_of_other_code),
        cmocka_unit_test(many_psbs_while_tracing_is_off),
        cmocka_unit_test(many_bytes_that_look_like_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
