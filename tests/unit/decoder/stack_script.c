/* See stack_script.h. */
#include "stack_script.h"

#include "base/vec.h"
#include "tracedb/tracedb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct function {
    const char *name;

    uint64_t start, size;

    enum dec_role role;

    const char *family;
};

static const struct function table[] = {
    {"main", 0x1000, 0x100, DEC_ROLE_PLAIN, NULL},
    {"a", 0x2000, 0x100, DEC_ROLE_PLAIN, NULL},
    {"b", 0x3000, 0x100, DEC_ROLE_PLAIN, NULL},
    {"c", 0x4000, 0x1000, DEC_ROLE_PLAIN, NULL},
    {"d", 0x5000, 0x100, DEC_ROLE_PLAIN, NULL},
    {"a.cold", 0x6000, 0x100, DEC_ROLE_PLAIN, "a"},
    {"f@plt", 0x7000, 0x10, DEC_ROLE_PLAIN, NULL},
    {"f", 0x7100, 0x100, DEC_ROLE_PLAIN, NULL},
    {"resolve", 0x7200, 0x100, DEC_ROLE_PLAIN, NULL},
    {"thunk", 0x7300, 0x20, DEC_ROLE_INDIRECT_THUNK, NULL},
    {"return_thunk", 0x7320, 0x20, DEC_ROLE_RETURN_THUNK, NULL},
    {"longjmp", 0x7400, 0x40, DEC_ROLE_UNWINDER, NULL},
    {"resume", 0x7440, 0x40, DEC_ROLE_RESUMER, NULL},
    {"read", 0x7500, 0x40, DEC_ROLE_PLAIN, NULL},
    {"handler", 0x7600, 0x100, DEC_ROLE_PLAIN, NULL},
    {"restorer", 0x7700, 0x10, DEC_ROLE_PLAIN, NULL},
    {"swap", 0x7800, 0x100, DEC_ROLE_PLAIN, NULL},
    {"_start", 0x7900, 0x40, DEC_ROLE_PLAIN, NULL},
    {"handler2", 0x7a00, 0x100, DEC_ROLE_PLAIN, NULL},
    {"runstack", 0x7b00, 0x80, DEC_ROLE_FIBER_STARTER, NULL},
    {"perform", 0x7b80, 0x40, DEC_ROLE_FIBER_PERFORMER, NULL},
    {"continue", 0x7bc0, 0x40, DEC_ROLE_FIBER_RESUMER, NULL},
    {"refuse", 0x7c00, 0x40, DEC_ROLE_FIBER_UNHANDLED, NULL},
    {"hole", 0x9000, 0x1000, DEC_ROLE_UNKNOWN, NULL},
    {"k_syscall", 0xffffffff81000000, 0x100, DEC_ROLE_PLAIN, NULL},
    {"k_read", 0xffffffff81001000, 0x100, DEC_ROLE_PLAIN, NULL},
    {"k_irq", 0xffffffff81002000, 0x100, DEC_ROLE_PLAIN, NULL},
    {"k_sched", 0xffffffff81003000, 0x100, DEC_ROLE_SCHEDULER, NULL},
    {"k_fault", 0xffffffff81005000, 0x100, DEC_ROLE_PLAIN, NULL},
    {"k_nmi", 0xffffffff81006000, 0x100, DEC_ROLE_PLAIN, NULL},
    {"k_msr", 0xffffffff81004000, 0x100, DEC_ROLE_PLAIN, NULL},
};

enum { NFUNCTIONS = sizeof(table) / sizeof(table[0]), TEXT = 1048576, INLINED = 1000 };

static struct dec_function functions[NFUNCTIONS];
static char text[TEXT];
static size_t length;
static uint32_t ncalls;
static struct dec_stack_counts counts;

static const char *const kinds[] = {"jcc",  "jmp",   "call",   "ret",     "syscall", "sysret",
                                    "ljmp", "async", "enable", "disable", "gap",     "ptwrite"};

static const struct {
    const char *name;

    uint16_t flag;
} flags[] = {{"indirect", DEC_INDIRECT}, {"resumed", DEC_RESUMED},     {"zero", DEC_ZERO_CALL},
             {"guess", DEC_TIME_EXACT},  {"async", DEC_ASYNC_DISABLE}, {"abort", DEC_TX_ABORT}};

static void say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    length += (size_t)vsnprintf(text + length, TEXT - length, fmt, args);
    va_end(args);
    assert_true(length < TEXT);
}

static uint64_t place(const char *word)
{
    size_t name = strcspn(word, "+");

    if (!strcmp(word, "-"))
        return 0;
    for (size_t i = 0; i < NFUNCTIONS; i++)
        if (strlen(table[i].name) == name && !strncmp(table[i].name, word, name))
            return table[i].start + (word[name] ? strtoul(word + name + 1, NULL, 10) : 0);
    fail_msg("no function '%s'", word);
    return 0;
}

static const struct dec_function *function(void *ctx, uint64_t time, uint64_t address)
{
    (void)ctx;
    (void)time;
    for (size_t i = 0; i < NFUNCTIONS; i++)
        if (address >= functions[i].start && address < functions[i].end)
            return &functions[i];
    fail_msg("no function at %#lx", address);
    return NULL;
}

static unsigned instruction_length(void *ctx, uint64_t time, uint64_t address)
{
    (void)ctx;
    (void)time;
    return address == place("read+8") ? 2 : 5;
}

/* The last instruction of "c" is a call. */
static bool call_before(void *ctx, uint64_t time, uint64_t address)
{
    (void)ctx;
    (void)time;
    assert_true(function(ctx, time, address)->start == address);
    return address == place("d");
}

static struct dec_inline_tree *inlined;

static uint32_t inlined_symbol(void *ctx, const struct dec_function *of, uint32_t node)
{
    (void)ctx;
    assert_ptr_equal(of->inlined, inlined);
    assert_true(node < inlined->nnodes);
    return INLINED + node;
}

static const char *call_name(uint32_t symbol)
{
    if (symbol >= INLINED)
        return inlined->nodes[symbol - INLINED].name;
    return symbol < NFUNCTIONS ? table[symbol].name : dec_pseudo_name(symbol - NFUNCTIONS);
}

enum { PIECE = 256 /* calls of a segment that come at once */ };

static ST_VEC(uint32_t) depths; /* of the segment's calls */

static int segment(void *ctx, const struct tdb_span *calls, const struct tdb_work *work, size_t n,
                   struct st_error *err)
{
    static const char *const names[] = {"no-call", "no-return", "tail", "inlined", "guess", "sampled"};

    (void)ctx;
    (void)work;
    (void)err;
    if (depths.n % PIECE) { /* a segment, not the next piece of one */
        say("--\n");
        depths.n = 0;
    }
    for (size_t i = 0; i < n; i++) {
        const struct tdb_span *c = &calls[i];

        if (c->parent) { /* the parent stands before it, one level up, in the same segment */
            size_t first = ncalls + i - depths.n;

            assert_in_range(c->parent - 1, first, ncalls + i - 1);
            assert_int_equal(depths.at[c->parent - 1 - first] + 1, c->depth);
        } else {
            assert_int_equal(c->depth, 0);
        }
        assert_int_equal(st_vec_push(&depths, c->depth), 0);
        assert_true(i == 0 || calls[i - 1].start <= c->start);
        say("%*s%s %lu+%lu self %lu", 2 * (int)c->depth, "", call_name(c->symbol), c->start, c->duration,
            c->self);
        for (int bit = 0; bit < 6; bit++)
            if (c->flags & 1u << bit)
                say(" %s", names[bit]);
        say("%s\n", c->flags & TDB_CALL_RECURSIVE ? " again" : "");
    }
    ncalls += (uint32_t)n;
    return 0;
}

static struct dec_event parse(char *line, bool no_length)
{
    struct dec_event e = {.cpu = -1, .flags = DEC_TIME_EXACT | DEC_TAKEN};
    char *at = line;
    const char *kind;

    e.time = strtoul(strsep(&at, " "), NULL, 10);
    kind = strsep(&at, " ");
    while (e.kind < 12 && strcmp(kinds[e.kind], kind))
        e.kind++;
    assert_true(e.kind < 12);
    if (at)
        e.from = place(strsep(&at, " "));
    if (at)
        e.to = place(strsep(&at, " "));
    while (at) {
        const char *word = strsep(&at, " ");

        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
            if (!strcmp(flags[i].name, word))
                e.flags ^= flags[i].flag;
    }
    if (!no_length)
        e.flags |= (uint16_t)((e.kind == DEC_FAR_CALL ? 2 : 5) << DEC_LENGTH_SHIFT);
    return e;
}

static void set_up(struct dec_stack_config *config, const struct script_options *options)
{
    for (size_t i = 0; i < NFUNCTIONS; i++) {
        functions[i] = (struct dec_function){.start = table[i].start,
                                             .end = table[i].start + table[i].size,
                                             .symbol = (uint32_t)i,
                                             .family = (uint32_t)i,
                                             .role = table[i].role,
                                             .guessed = table[i].role == DEC_ROLE_UNKNOWN};
        for (size_t j = 0; j < NFUNCTIONS; j++)
            if (table[i].family && !strcmp(table[i].family, table[j].name))
                functions[i].family = (uint32_t)j;
        functions[i].own = table[i].start;
        if (functions[i].family == 1)
            functions[i].inlined = options->inlined;
    }
    *config = (struct dec_stack_config){.function = function,
                                        .length = instruction_length,
                                        .call_before = call_before,
                                        .segment = segment,
                                        .offcpu = options->offcpu,
                                        .noffcpu = options->noffcpu,
                                        .execs = options->execs,
                                        .nexecs = options->nexecs};
    inlined = options->inlined;
    if (inlined)
        config->inlined = inlined_symbol;
    for (uint32_t i = 0; i < DEC_PSEUDO_COUNT; i++)
        config->pseudo[i] = NFUNCTIONS + i;
    length = 0;
    ncalls = 0;
    text[0] = '\0';
}

const char *script_run(const char *script, const struct script_options *options)
{
    static const struct script_options none;
    struct dec_stack_config config;
    struct dec_stack *s;
    struct st_error err = {0};
    char *copy = strdup(script);
    char *at = copy;

    options = options ? options : &none;
    set_up(&config, options);
    assert_int_equal(dec_stack_open(&config, &s, &err), 0);
    while (at && *at) {
        struct dec_event e = parse(strsep(&at, "\n"), options->no_length);

        assert_int_equal(dec_stack_events(s, &e, 1, &err), 0);
    }
    assert_int_equal(dec_stack_finish(s, options->end, &err), 0);
    counts = *dec_stack_counts(s);
    assert_int_equal(counts.calls, ncalls);
    st_vec_free(&depths);
    dec_stack_close(s);
    free(copy);
    return text;
}

struct dec_stack_counts script_counts(void)
{
    return counts;
}
