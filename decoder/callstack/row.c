/* The rows of a segment, of which only those around the open frames are kept as they are: the others are
 * packed, and where that is too much they go to the spill. */
#include "decoder/callstack/stack_impl.h"

#include <stdlib.h>

static uint32_t inexact(const struct dec_stack *s)
{
    return s->exact ? 0 : TDB_CALL_INTERPOLATED;
}

struct row *stk_row(struct dec_stack *s, uint32_t handle)
{
    if (handle & ROW_INSERTED)
        return &s->inserted.at[handle & ~ROW_INSERTED].row;
    return &s->blocks.at[handle / ROWS].rows[handle % ROWS];
}

static int new_block(struct dec_stack *s)
{
    struct row_block block = {.rows = s->spare};

    if (!block.rows)
        block.rows = malloc(ROWS * sizeof(struct row));
    s->spare = NULL;
    if (block.rows && !st_vec_push(&s->blocks, block))
        return 0;
    free(block.rows);
    return -1;
}

int stk_new_row(struct dec_stack *s, uint32_t symbol, uint32_t parent, uint32_t flags)
{
    struct row_block *block;

    if (s->nrows >= ROW_INSERTED - 1 || (s->nrows % ROWS == 0 && new_block(s)))
        return -1;
    block = &s->blocks.at[s->blocks.n - 1];
    block->rows[block->n++] = (struct row){
        .call = {.start = s->now, .symbol = symbol, .parent = parent, .flags = flags | inexact(s)}};
    s->nrows++;
    return 0;
}

static int pack(struct dec_stack *s, size_t index)
{
    struct row_block *block = &s->blocks.at[index];
    uint64_t before = 0;

    for (uint32_t i = 0; i < ROWS; i++) {
        const struct row *row = &block->rows[i];
        struct st_spool_place place;
        uint8_t *to = st_spool_room(&s->packed, TDB_PACKED_MOST, &place, &s->error);

        if (!to)
            return -1;
        if (!i)
            block->place = place;
        st_spool_wrote(
            &s->packed,
            (size_t)(tdb_pack(to, &row->call, &row->work, (uint32_t)(index * ROWS) + i, before) - to));
        before = row->call.start;
    }
    if (s->spare)
        free(block->rows);
    else
        s->spare = block->rows;
    block->rows = NULL;
    return 0;
}

int stk_row_ended(struct dec_stack *s, uint32_t handle)
{
    struct row_block *block;

    if (handle & ROW_INSERTED)
        return 0;
    block = &s->blocks.at[handle / ROWS];
    return ++block->ended == ROWS ? pack(s, handle / ROWS) : 0;
}

void stk_clear_rows(struct dec_stack *s)
{
    for (size_t i = 0; i < s->blocks.n; i++) {
        if (!s->blocks.at[i].rows)
            continue;
        free(s->spare);
        s->spare = s->blocks.at[i].rows;
    }
    s->blocks.n = 0;
    s->nrows = 0;
    s->inserted.n = 0;
    s->parents.n = 0;
    st_spool_clear(&s->packed);
}
