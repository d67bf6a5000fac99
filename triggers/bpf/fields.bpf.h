/* if= on the fields of a tracepoint's record. */
#ifndef ST_TRIGGERS_BPF_FIELDS_BPF_H
#define ST_TRIGGERS_BPF_FIELDS_BPF_H

#include "triggers/bpf/filter.bpf.h"

static __always_inline bool text_is(const volatile struct filter_term *t, const char *text)
{
    for (int i = 0; i < FILTER_TEXT; i++) {
        if (text[i] != t->text[i])
            return false;
        if (!t->text[i])
            break;
    }
    return true;
}

static __always_inline bool text_passes(const volatile struct filter_term *t, const char *record)
{
    char text[FILTER_TEXT] = "";
    const char *at = record + t->index;
    st_u32 place = 0;

    if (t->is_far) {
        bpf_probe_read_kernel(&place, sizeof(place), at);
        at = record + (place & 0xffff);
    }
    bpf_probe_read_kernel_str(text, sizeof(text), at);
    return text_is(t, text) == (t->op == FILTER_EQ);
}

static __always_inline st_u64 field_value(const volatile struct filter_term *t, const char *record)
{
    st_u32 bits = 64 - 8 * t->size;
    st_u64 v = 0;

    switch (t->size) {
    case 1:
        bpf_probe_read_kernel(&v, 1, record + t->index);
        break;
    case 2:
        bpf_probe_read_kernel(&v, 2, record + t->index);
        break;
    case 4:
        bpf_probe_read_kernel(&v, 4, record + t->index);
        break;
    default:
        bpf_probe_read_kernel(&v, 8, record + t->index);
    }
    return t->is_signed ? (st_u64)((st_s64)(v << bits) >> bits) : v;
}

static __always_inline bool fields_pass(const volatile struct filter *f, const void *record)
{
#pragma unroll
    for (st_u32 i = 0; i < FILTER_TERMS; i++) {
        const volatile struct filter_term *t = &f->term[i];

        if (i >= f->n)
            break;
        if (t->is_text ? !text_passes(t, record) : !value_passes(t, field_value(t, record)))
            return false;
    }
    return true;
}

#endif
