/* The list of gaps. */
#include "decoder/model/gap.h"

#include <stdlib.h>
#include <string.h>

int dec_gap_add(struct dec_gaps *gaps, const struct dec_gap_row *row, const char *detail)
{
    struct dec_gap_row copy = *row;

    copy.detail = detail && *detail ? strdup(detail) : NULL;
    if (detail && *detail && !copy.detail)
        return -1;
    if (st_vec_push(&gaps->rows, copy)) {
        free(copy.detail);
        return -1;
    }
    return 0;
}

/* Rings are decoded one after the other, so an open gap is among the last rows. */
void dec_gap_close(struct dec_gaps *gaps, uint32_t ring, uint64_t time)
{
    for (size_t i = gaps->rows.n; i-- > 0;) {
        struct dec_gap_row *row = &gaps->rows.at[i];

        if (row->ring != ring)
            return;
        if (!row->open)
            return;
        row->open = false;
        row->end = time > row->start ? time : row->start;
    }
}

void dec_gap_end(struct dec_gaps *gaps, uint64_t last)
{
    for (size_t i = 0; i < gaps->rows.n; i++) {
        struct dec_gap_row *row = &gaps->rows.at[i];

        if (row->open)
            row->end = last > row->start ? last : row->start;
        row->open = false;
    }
}

void dec_gaps_free(struct dec_gaps *gaps)
{
    for (size_t i = 0; i < gaps->rows.n; i++)
        free(gaps->rows.at[i].detail);
    st_vec_free(&gaps->rows);
}
