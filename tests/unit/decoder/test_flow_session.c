/* Rings that share the graph of code: of several processes, over a time in which code is replaced, at once,
 * and with more code than is kept. */
#include "flow_script.h"

#include <pthread.h>

enum {
    RINGS = 12,
    THREADS = 3,
    BLOCKS = 40, /* 40 * 60001 nodes: more than a session keeps */
    JUMPS = 60000,
    BLOCK = JUMPS * 2 + 2,
    REPLACED = 5000, /* ns */
};

static struct dec_space *spaces[2];

/* Rings of even and of odd numbers are of two processes. */
static int by_ring(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    (void)ctx;
    (void)time;
    *where = (struct dec_where){
        .pid = 7, .tid = (int32_t)ring, .cpu = 3, .space = spaces[ring % 2], .until = UINT64_MAX};
    return 0;
}

/* What a ring decodes to. */
static void decode(struct script *s, uint32_t ring, struct dec_session *session, struct script_reference *r,
                   struct dec_flow_counts *counts)
{
    struct dec_piece piece = {.bytes = s->trace, .size = script_size(s)};
    struct dec_flow_options options = script_options(s);
    options.session = session;
    options.ring = ring;
    options.where = by_ring;
    options.emit = script_reference_emit;
    options.emit_ctx = r;
    memset(counts, 0, sizeof(*counts));
    assert_int_equal(dec_flow_run(&options, &piece, 1, counts, NULL), 0);
}

static void is_same(const struct script_reference *a, const struct script_reference *b)
{
    assert_int_equal(a->events.n, b->events.n);
    for (size_t i = 0; i < a->events.n; i++)
        assert_memory_equal(&a->events.at[i], &b->events.at[i], sizeof(*a->events.at));
}

/* At one address: a jump back in the one process; in the other no jump, and from a time on a call. */
static void lay_out(struct script *s)
{
    static const uint8_t jump[] = {0x75, 0xfe, 0xff, 0xe0};    /* jne 1000; jmp *rax */
    static const uint8_t forward[] = {0x75, 0x00, 0xff, 0xe0}; /* jne 1002; jmp *rax */
    static const uint8_t call[] = {0x74, 0x00, 0xff, 0xd0};    /* je 1002; call *rax */
    for (int i = 0; i < 2; i++)
        assert_int_equal(dec_space_new(NULL, &spaces[i], NULL), 0);
    assert_int_equal(
        dec_space_map(spaces[0], 0, 0x1000, 4, 0, script_code_at(s, 0, 0x10000, jump, 4, "a"), NULL), 0);
    assert_int_equal(
        dec_space_map(spaces[1], 0, 0x1000, 4, 0, script_code_at(s, 0, 0x20000, forward, 4, "b"), NULL), 0);
    assert_int_equal(
        dec_space_map(spaces[1], REPLACED, 0x1000, 4, 0, script_code_at(s, 0, 0x30000, call, 4, "c"), NULL),
        0);
}

static void put_rounds(struct script *s)
{
    put_psb(s, 0, 1);
    put_mode(s, ptem_64bit);
    for (uint64_t time = 1000; time < 10 * 1000; time += 1000) {
        put_tsc(s, time);
        put_ip(s, ppt_tip_pge, 0x1000);
        put_tnt(s, "N");
        put_ip(s, ppt_tip, 0x1000);
        put_tnt(s, "TN");
        put_ip(s, ppt_tip_pgd, 0);
        put_psb(s, 0, time + 500);
    }
}

static void free_spaces(void)
{
    for (int i = 0; i < 2; i++)
        dec_space_free(spaces[i]);
}

static unsigned kinds_of(const struct script_reference *r)
{
    unsigned kinds = 0;
    for (size_t i = 0; i < r->events.n; i++)
        kinds |= 1u << r->events.at[i].kind;
    return kinds;
}

static void other_code_at_the_same_address(void **state)
{
    struct script *s = *state;
    struct dec_session *session;
    struct dec_flow_counts counts;
    struct script_reference alone[2] = {0};
    lay_out(s);
    put_rounds(s);
    for (uint32_t i = 0; i < 2; i++)
        decode(s, i, NULL, &alone[i], &counts);
    /* They do differ, and the second's code did change. */
    assert_false(kinds_of(&alone[0]) & 1u << DEC_CALL);
    assert_true(kinds_of(&alone[1]) & 1u << DEC_CALL && kinds_of(&alone[1]) & 1u << DEC_JUMP);
    assert_int_equal(dec_session_new(1 << 20, &session, NULL), 0);
    for (uint32_t ring = 0; ring < RINGS; ring++) {
        struct script_reference r = {0};
        decode(s, ring, session, &r, &counts);
        is_same(&r, &alone[ring % 2]);
        st_vec_free(&r.events);
    }
    dec_session_free(session);
    st_vec_free(&alone[0].events);
    st_vec_free(&alone[1].events);
    free_spaces();
}

struct task {
    struct script *s;

    struct dec_session *session;

    uint32_t first;

    struct script_reference found[RINGS];
};

static void *take_rings(void *arg)
{
    struct task *task = arg;
    struct dec_flow_counts counts;
    for (uint32_t i = 0; i < RINGS; i++)
        decode(task->s, task->first + i, task->session, &task->found[i], &counts);
    return NULL;
}

static void several_at_once(void **state)
{
    struct script *s = *state;
    struct task tasks[THREADS] = {0};
    pthread_t threads[THREADS];
    struct dec_flow_counts counts;
    struct script_reference alone[2] = {0};
    struct dec_session *session;
    lay_out(s);
    put_rounds(s);
    for (uint32_t i = 0; i < 2; i++)
        decode(s, i, NULL, &alone[i], &counts);
    assert_int_equal(dec_session_new(1 << 20, &session, NULL), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        tasks[i].s = s;
        tasks[i].session = session;
        tasks[i].first = i;
        assert_int_equal(pthread_create(&threads[i], NULL, take_rings, &tasks[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        for (uint32_t k = 0; k < RINGS; k++) {
            is_same(&tasks[i].found[k], &alone[(i + k) % 2]);
            st_vec_free(&tasks[i].found[k].events);
        }
    }
    dec_session_free(session);
    st_vec_free(&alone[0].events);
    st_vec_free(&alone[1].events);
    free_spaces();
}

/* Each ring walks over more code than a session keeps, so that the next begins anew. */
static void more_code_than_is_kept(void **state)
{
    struct script *s = *state;
    struct dec_session *session;
    struct dec_flow_counts counts;
    uint8_t *code = malloc((size_t)BLOCKS * BLOCK);
    assert_non_null(code);
    for (size_t i = 0; i < (size_t)BLOCKS * BLOCK; i += 2)
        memcpy(code + i, i % BLOCK == 2 * JUMPS ? "\xff\xe0" : "\xeb\x00", 2); /* jmp *rax; jmp to the next */
    script_code_at(s, 0, 0x400000, code, (size_t)BLOCKS * BLOCK, "long");
    free(code);
    spaces[0] = spaces[1] = s->space;
    put_psb(s, 0x400000, 1000);
    for (uint64_t i = 1; i < BLOCKS; i++)
        put_ip(s, ppt_tip, 0x400000 + i * BLOCK);
    put_ip(s, ppt_tip_pgd, 0);
    assert_int_equal(dec_session_new(1 << 20, &session, NULL), 0);
    for (uint32_t ring = 0; ring < 3; ring++) {
        struct script_reference r = {0};
        decode(s, ring, session, &r, &counts);
        assert_int_equal(counts.jump, (uint64_t)BLOCKS * (JUMPS + 1));
        assert_int_equal(counts.slow, 0);
        st_vec_free(&r.events);
    }
    dec_session_free(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(other_code_at_the_same_address),
        SCRIPT_TEST(several_at_once),
        SCRIPT_TEST(more_code_than_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
