/* Samples of one thread, written down as a script, and the calls that become of them. Behind cmocka.h. */
#ifndef ST_UNIT_DECODER_SAMPLE_SCRIPT_H
#define ST_UNIT_DECODER_SAMPLE_SCRIPT_H

#include "decoder/model/samples/samples.h"
#include "tracedb/tracedb.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

/* A thread's samples, and the calls they make. */
struct script {
    dec_sample_frames frames;

    struct dec_chain chains[MOST];

    size_t n;

    struct dec_offcpu offcpu[MOST];

    size_t noffcpu;

    dec_measured_calls measured;

    uint64_t all_until; /* every switch before it has a sample; 0: every one */

    dec_calls calls;
};

/* A chain as text, the outermost first: a letter a function, a digit behind it which call of it is under way;
 * upper case is the kernel, which the last in lower case before it called;
 * from f on, but for g, that is a library's function made for it. */
static inline void at(struct script *s, uint64_t time, const char *text, bool off)
{
    struct dec_chain *c = &s->chains[s->n++];
    uint32_t users = 0;

    *c = (struct dec_chain){.time = time, .first = (uint32_t)s->frames.n, .off = off};
    for (; *text; text++) {
        struct dec_sample_frame f = {.symbol = (uint32_t)(*text | 32), .kernel = !(*text & 32)};

        f.site = f.symbol * 100u;
        if (text[1] >= '0' && text[1] <= '9')
            f.site += (uint64_t)(*++text - '0') + 1;
        assert_int_equal(st_vec_push(&s->frames, f), 0);
        c->n++;
        users += !f.kernel;
    }
    c->outer = users;
    if (users > 1 && users < c->n && s->frames.at[c->first + users - 1].symbol >= 'f' &&
        s->frames.at[c->first + users - 1].symbol != 'g')
        c->outer--;
}

static inline void off(struct script *s, uint64_t start, uint64_t end, const char *text)
{
    s->offcpu[s->noffcpu++] = (struct dec_offcpu){.start = start, .end = end};
    if (text)
        at(s, start - 1, text, true);
}

static inline void make(struct script *s, uint64_t start, uint64_t end, bool whole)
{
    struct dec_samples in = {.frames = s->frames.at,
                             .chains = s->chains,
                             .n = s->n,
                             .offcpu = s->offcpu,
                             .noffcpu = s->noffcpu,
                             .measured = &s->measured,
                             .part_since = s->all_until ? s->all_until : UINT64_MAX,
                             .tid = 7};
    struct dec_samples_segment segment = {
        .n = s->n, .start = start, .end = end, .born = whole, .ended = whole};

    assert_int_equal(dec_samples_calls(&in, &segment, &s->calls), 0);
}

static inline void end(struct script *s)
{
    st_vec_free(&s->frames);
    st_vec_free(&s->calls);
    st_vec_free(&s->measured);
}

/* The n-th call of a function; its start and end. */
static inline const struct tdb_span *call(const struct script *s, char function, size_t n)
{
    for (size_t i = 0; i < s->calls.n; i++)
        if (s->calls.at[i].symbol == (uint32_t)function && !n--)
            return &s->calls.at[i];
    fail_msg("there is no such call of %c", function);
    return NULL;
}

static inline size_t count(const struct script *s, char function)
{
    size_t n = 0;

    for (size_t i = 0; i < s->calls.n; i++)
        n += s->calls.at[i].symbol == (uint32_t)function;
    return n;
}

static inline void lasts(const struct script *s, char function, size_t n, uint64_t from, uint64_t to)
{
    const struct tdb_span *c = call(s, function, n);

    assert_int_equal(c->start, from);
    assert_int_equal(c->start + c->duration, to);
}

#endif
