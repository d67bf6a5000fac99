/* Row ids of symbols and modules. Several threads meet symbols in an order that is chance; the database must
 * not show it. */
#include "decoder/model/model_impl.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 64 };

static int room_for(struct model_symbols *used, uint32_t symbol)
{
    size_t n = symbol / WORD + 1;
    uint64_t *seen;

    if (n <= used->nseen)
        return 0;
    n += n / 2;
    seen = reallocarray(used->seen, n, sizeof(*seen));
    if (!seen)
        return -1;
    memset(seen + used->nseen, 0, (n - used->nseen) * sizeof(*seen));
    used->seen = seen;
    used->nseen = n;
    return 0;
}

int model_use_symbols(struct model_symbols *used, const struct tdb_span *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t symbol = calls[i].symbol;

        if (room_for(used, symbol))
            return -1;
        if (used->seen[symbol / WORD] >> symbol % WORD & 1)
            continue;
        used->seen[symbol / WORD] |= UINT64_C(1) << symbol % WORD;
        if (st_vec_push(&used->list, symbol))
            return -1;
    }
    return 0;
}

/* A symbol that no call names, with what it is put in order by. */
struct unused {
    const struct dec_module_row *module;

    const struct dec_symbol_row *row;

    uint32_t index;
};

static int by_name(const void *a, const void *b)
{
    const struct unused *x = a, *y = b;
    int order = strcmp(x->module->path, y->module->path);

    if (!order)
        order = strcmp(x->module->name, y->module->name);
    if (!order)
        order = strcmp(x->module->build_id, y->module->build_id);
    if (!order)
        order = strcmp(x->row->name, y->row->name);
    if (order)
        return order;
    if (x->row->address != y->row->address)
        return x->row->address < y->row->address ? -1 : 1;
    if (x->row->size != y->row->size)
        return x->row->size < y->row->size ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Ids of what has none yet, in the order of names. */
static int number_unused(const struct dec_symbols *s, uint32_t *ids, size_t n, uint32_t next)
{
    struct unused *list = calloc(n + 1, sizeof(*list));
    size_t count = 0;

    if (!list)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        const struct dec_symbol_row *row = dec_symbols_at(s, i);

        if (ids[i] == UINT32_MAX)
            list[count++] = (struct unused){dec_modules_at(s, row->module), row, i};
    }
    qsort(list, count, sizeof(*list), by_name);
    for (size_t i = 0; i < count; i++)
        ids[list[i].index] = next++;
    free(list);
    return 0;
}

static uint32_t number_used(const struct dec_model *m, uint32_t *ids)
{
    uint32_t next = 0;

    for (size_t i = 0; i < m->nthreads; i++) {
        const struct model_thread *t = m->threads[i];

        for (size_t k = 0; t && k < t->used.list.n; k++)
            if (ids[t->used.list.at[k]] == UINT32_MAX)
                ids[t->used.list.at[k]] = next++;
    }
    return next;
}

/* Modules come in the order of their symbols. */
static int number_modules(struct dec_model *m, const uint32_t *of, size_t n)
{
    size_t modules = dec_modules_count(m->symbols);
    uint32_t *ids = calloc(modules + 1, sizeof(*ids)), next = 0;

    if (!ids)
        return -1;
    memset(ids, 0xff, modules * sizeof(*ids));
    for (size_t i = 0; i < n; i++) {
        uint32_t *id = &ids[dec_symbols_at(m->symbols, of[i])->module];

        if (*id == UINT32_MAX)
            *id = next++;
    }
    for (size_t i = 0; i < modules; i++)
        if (ids[i] == UINT32_MAX)
            ids[i] = next++;
    m->module_ids = ids;
    m->nmodule_ids = modules;
    return 0;
}

/* The calls are read with the new numbers. */
static void number_calls(struct dec_model *m)
{
    for (size_t i = 0; i < m->nthreads; i++) {
        struct model_thread *t = m->threads[i];

        if (!t)
            continue;
        t->calls.ids = m->symbol_ids;
        t->calls.symbols = 0;
        for (size_t k = 0; k < t->used.list.n; k++)
            if (m->symbol_ids[t->used.list.at[k]] >= t->calls.symbols)
                t->calls.symbols = m->symbol_ids[t->used.list.at[k]] + 1;
    }
}

int model_number_symbols(struct dec_model *m)
{
    size_t n = dec_symbols_count(m->symbols);
    uint32_t *ids, *of;
    int rc;

    if (model_is_alone(m) || !m->sb->has_pt || !n)
        return 0;
    ids = calloc(n, sizeof(*ids));
    of = calloc(n, sizeof(*of));
    if (ids)
        memset(ids, 0xff, n * sizeof(*ids));
    rc = ids && of ? number_unused(m->symbols, ids, n, number_used(m, ids)) : -1;
    for (uint32_t i = 0; i < n && !rc; i++)
        of[ids[i]] = i;
    if (!rc)
        rc = number_modules(m, of, n);
    free(of);
    m->symbol_ids = ids;
    m->nsymbol_ids = rc ? 0 : n;
    if (!rc)
        number_calls(m);
    return rc;
}
