/* if=: conditions on the values that an event comes with. Shared with BPF. */
#ifndef ST_TRIGGERS_BPF_FILTER_H
#define ST_TRIGGERS_BPF_FILTER_H

#include "base/stall_record.h"

#define FILTER_TERMS 8
#define FILTER_TEXT  16

enum filter_source {
    FILTER_ARG,   /* argument `index` of a call */
    FILTER_RET,   /* what it returned */
    FILTER_FIELD, /* of a tracepoint's record: `size` bytes at `index` */
};

enum filter_op {
    FILTER_EQ,
    FILTER_NE,
    FILTER_LT,
    FILTER_LE,
    FILTER_GT,
    FILTER_GE,
    FILTER_HAS, /* one of these bits at least */
};

struct filter_term {
    st_u32 source;

    st_u32 index;

    st_u32 size; /* of a field: 1, 2, 4, 8; or a text's room */

    st_u32 is_signed;

    st_u32 op;

    st_u32 is_text; /* compared with `text`: only EQ and NE */

    st_u32 is_far; /* the field holds the place of the text: length << 16 | offset */

    st_u64 value;

    char text[FILTER_TEXT];
};

struct filter {
    st_u32 n; /* all must hold */

    struct filter_term term[FILTER_TERMS];
};

#endif
