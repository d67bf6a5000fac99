/* if=: whether the conditions hold. They are constants of the loaded program: without any, nothing is left.
 */
#ifndef ST_TRIGGERS_BPF_FILTER_BPF_H
#define ST_TRIGGERS_BPF_FILTER_BPF_H

#include "triggers/bpf/filter.h"
#include "triggers/bpf/kernel.h"

#define ARGS 6

typedef long long st_s64;

static __always_inline bool value_passes(const volatile struct filter_term *t, st_u64 v)
{
    st_u64 limit = t->value;

    switch (t->op) {
    case FILTER_EQ:
        return v == limit;
    case FILTER_NE:
        return v != limit;
    case FILTER_LT:
        return t->is_signed ? (st_s64)v < (st_s64)limit : v < limit;
    case FILTER_LE:
        return t->is_signed ? (st_s64)v <= (st_s64)limit : v <= limit;
    case FILTER_GT:
        return t->is_signed ? (st_s64)v > (st_s64)limit : v > limit;
    case FILTER_GE:
        return t->is_signed ? (st_s64)v >= (st_s64)limit : v >= limit;
    default:
        return v & limit;
    }
}

/* A call with these arguments; `returned`: with this value. One that has not returned passes no condition on
 * what it returns. */
static __always_inline bool call_passes(const volatile struct filter *f, const st_u64 *args, bool returned,
                                        st_u64 ret)
{
#pragma unroll
    for (st_u32 i = 0; i < FILTER_TERMS; i++) {
        const volatile struct filter_term *t = &f->term[i];
        st_u32 index = t->index;

        if (i >= f->n)
            break;
        if (t->source == FILTER_RET) {
            if (!returned || !value_passes(t, ret))
                return false;
        } else if (index >= ARGS || !value_passes(t, args[index])) {
            return false;
        }
    }
    return true;
}

#endif
