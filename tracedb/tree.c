/* Sorted entries -> the pages of a B-tree, from the leaves up. */
#include "tracedb/tree.h"
#include "base/progress.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEVELS = 20,
    INDEX_INTERIOR = 2,
    TABLE_INTERIOR = 5,
    INDEX_LEAF = 10,
    TABLE_LEAF = 13,
    LEAF_HEAD = 8,
    INTERIOR_HEAD = 12,
    VARINT = 9,    /* bytes at most */
    EXTENT = 256,  /* pages that are written at once */
    LEAST_CELL = 4 /* bytes: smaller ones take as much */
};

/* A page that is being filled: cells from its end down, pointers to them from its head up. */
struct page {
    uint8_t *data;

    unsigned cells, content; /* where the content begins */

    unsigned last_size; /* of the last cell */

    uint32_t right; /* interior: the rightmost child */
};

/* One level of the tree. A page that is full waits until the one behind it has a cell, since none may be
 * empty. */
struct level {
    bool begun, waiting;

    struct page now, full;

    uint8_t *between; /* the key that stands between the two, in the level above */

    size_t between_size;
};

enum { COUNTED = 4096 /* entries between two words of progress */ };

struct tdb_tree {
    struct tdb_pages *pages;

    uint32_t root;

    bool index;

    struct level levels[LEVELS];

    int64_t rowid;

    uint8_t *cell; /* one that is being made */

    struct tdb_page_range extent;

    uint32_t used; /* of the extent */

    uint32_t wanted; /* pages for the next extent: small trees take few */

    uint8_t *data; /* the extent's */

    uint64_t added; /* entries */
};

/* ---- numbers ---- */

static size_t put_varint(uint8_t *to, uint64_t value)
{
    uint8_t reversed[VARINT + 1];
    size_t n = 0;

    if (value >> 56) { /* nine bytes: the last has eight bits */
        for (int i = 0; i < 8; i++)
            to[i] = (uint8_t)(value >> (57 - 7 * i) | 0x80);
        to[8] = (uint8_t)value;
        return VARINT;
    }
    do
        reversed[n++] = (uint8_t)((value & 0x7f) | 0x80);
    while (value >>= 7);
    reversed[0] &= 0x7f;
    for (size_t i = 0; i < n; i++)
        to[i] = reversed[n - 1 - i];
    return n;
}

size_t tdb_record_put(const struct tdb_record *r, size_t blob, uint8_t *to)
{
    uint8_t type[VARINT];
    size_t ntype = blob ? put_varint(type, 2 * (uint64_t)blob + 12) : 0;
    size_t head = 1 + r->ntypes + ntype;

    to[0] = (uint8_t)head;
    memcpy(to + 1, r->types, r->ntypes);
    memcpy(to + 1 + r->ntypes, type, ntype);
    memcpy(to + head, r->values, r->nvalues);
    return head + r->nvalues;
}

/* ---- pages ---- */

static size_t cell_room(const struct tdb_tree *t)
{
    return t->pages->size + 2 * VARINT + 8;
}

static int flush_extent(struct tdb_tree *t, struct st_error *err)
{
    int rc = t->used ? tdb_pages_write(t->pages, t->extent.first, t->data, t->used, err) : 0;

    t->extent.first += t->used;
    t->extent.n -= t->used;
    t->used = 0;
    return rc;
}

/* A page of the tree that is written with its extent. */
static int new_page(struct tdb_tree *t, uint8_t **data, uint32_t *number, struct st_error *err)
{
    int rc = 0;

    if (t->used < t->extent.n && t->extent.first + t->used == tdb_pages_locked(t->pages))
        memset(t->data + (size_t)t->used++ * t->pages->size, 0, t->pages->size);
    if (t->used == t->extent.n) {
        rc = flush_extent(t, err);
        if (!rc)
            rc = tdb_pages_take(t->pages, t->wanted, &t->extent, err);
        t->wanted = t->wanted < EXTENT ? t->wanted * 2 : EXTENT;
        return rc ? rc : new_page(t, data, number, err);
    }
    *number = t->extent.first + t->used;
    *data = t->data + (size_t)t->used++ * t->pages->size;
    return 0;
}

static unsigned head_of(unsigned level)
{
    return level ? INTERIOR_HEAD : LEAF_HEAD;
}

static void empty_page(struct tdb_tree *t, struct page *p)
{
    p->cells = 0;
    p->content = t->pages->size;
    p->right = 0;
}

static void put_head(struct tdb_tree *t, unsigned level, struct page *p)
{
    p->data[0] =
        (uint8_t)(t->index ? (level ? INDEX_INTERIOR : INDEX_LEAF) : (level ? TABLE_INTERIOR : TABLE_LEAF));
    tdb_put16(p->data + 1, 0);
    tdb_put16(p->data + 3, p->cells);
    tdb_put16(p->data + 5, p->content & 0xffff); /* 65536 is written as 0 */
    p->data[7] = 0;
    if (level)
        tdb_put32(p->data + LEAF_HEAD, p->right);
    memset(p->data + head_of(level) + 2 * (size_t)p->cells, 0,
           p->content - head_of(level) - 2 * (size_t)p->cells);
}

static int write_page(struct tdb_tree *t, unsigned level, struct page *p, uint32_t *number,
                      struct st_error *err)
{
    uint8_t *to;
    int rc = new_page(t, &to, number, err);

    if (rc)
        return rc;
    put_head(t, level, p);
    memcpy(to, p->data, t->pages->size);
    return 0;
}

static bool fits(const struct page *p, unsigned level, size_t size)
{
    size = size < LEAST_CELL ? LEAST_CELL : size;
    return head_of(level) + 2 * ((size_t)p->cells + 1) + size <= p->content;
}

/* `child` belongs to cells of interior pages. */
static void put_cell(struct page *p, unsigned level, uint32_t child, const uint8_t *cell, size_t n)
{
    size_t size = n + (level ? 4 : 0);
    uint8_t *to;

    p->last_size = (unsigned)(size < LEAST_CELL ? LEAST_CELL : size);
    p->content -= p->last_size;
    to = p->data + p->content;
    if (level)
        tdb_put32(to, child);
    memcpy(to + (level ? 4 : 0), cell, n);
    tdb_put16(p->data + head_of(level) + 2 * (size_t)p->cells++, p->content);
}

/* ---- levels ---- */

static int begin_level(struct tdb_tree *t, struct level *l, struct st_error *err)
{
    if (l->begun)
        return 0;
    l->begun = true;
    l->now.data = malloc(t->pages->size);
    l->full.data = malloc(t->pages->size);
    l->between = malloc(cell_room(t));
    if (!l->now.data || !l->full.data || !l->between)
        return st_nomem(err, "a page of the database");
    empty_page(t, &l->now);
    return 0;
}

static void close_page(struct tdb_tree *t, struct level *l, const uint8_t *between, size_t n)
{
    struct page full = l->now;

    l->now = l->full;
    l->full = full;
    empty_page(t, &l->now);
    memcpy(l->between, between, n);
    l->between_size = n;
    l->waiting = true;
}

static int add(struct tdb_tree *t, unsigned level, uint32_t child, const uint8_t *cell, size_t n,
               struct st_error *err);

static int pass_full(struct tdb_tree *t, unsigned level, struct st_error *err)
{
    struct level *l = &t->levels[level];
    uint32_t number;
    int rc;

    if (!l->waiting)
        return 0;
    l->waiting = false;
    rc = write_page(t, level, &l->full, &number, err);
    return rc ? rc : add(t, level + 1, number, l->between, l->between_size, err);
}

/* A cell that does not fit: in a table the page's last rowid goes between the pages, else the cell itself. */
static int add_behind(struct tdb_tree *t, unsigned level, uint32_t child, const uint8_t *cell, size_t n,
                      struct st_error *err)
{
    struct level *l = &t->levels[level];
    uint8_t key[VARINT];

    if (level || t->index) {
        close_page(t, l, cell, n);
        l->full.right = child;
        return 0;
    }
    close_page(t, l, key, put_varint(key, (uint64_t)t->rowid));
    put_cell(&l->now, level, child, cell, n);
    return pass_full(t, level, err);
}

static int add(struct tdb_tree *t, unsigned level, uint32_t child, const uint8_t *cell, size_t n,
               struct st_error *err)
{
    struct level *l = &t->levels[level];
    int rc;

    if (level >= LEVELS)
        return st_fail(err, ST_EFAIL, "cannot write '%s': the trace is too large for a database",
                       t->pages->path);
    rc = begin_level(t, l, err);
    if (rc)
        return rc;
    if (!fits(&l->now, level, n + (level ? 4 : 0)))
        return add_behind(t, level, child, cell, n, err);
    put_cell(&l->now, level, child, cell, n);
    return pass_full(t, level, err);
}

/* The last page of a level has no cell: it gets the one between it and the page before, which loses its last
 * one for that. */
static void borrow(struct level *l, unsigned level)
{
    struct page *full = &l->full;
    const uint8_t *last = full->data + full->content;
    uint32_t child = full->right;
    size_t n = full->last_size;

    put_cell(&l->now, level, child, l->between, l->between_size);
    if (level) {
        full->right = tdb_get32(last);
        last += 4;
        n -= 4;
    }
    memcpy(l->between, last, n);
    l->between_size = n;
    full->content += full->last_size;
    full->cells--;
}

/* ---- entries ---- */

/* What of a record stands in its cell (the format's section 1.6: U, X, M, K). */
static size_t local_size(const struct tdb_tree *t, size_t size)
{
    size_t usable = t->pages->size;
    size_t most = t->index ? (usable - 12) * 64 / 255 - 23 : usable - 35;
    size_t least = (usable - 12) * 32 / 255 - 23;
    size_t local = least + (size - least) % (usable - 4);

    if (size <= most)
        return size;
    return local <= most ? local : least;
}

/* Sees to n pages in a row, none of them the locked one. */
static int want_row(struct tdb_tree *t, uint32_t n, struct st_error *err)
{
    uint32_t locked = tdb_pages_locked(t->pages), from = t->extent.first + t->used;
    int rc;

    if (n > EXTENT)
        return st_fail(err, ST_EFAIL, "cannot write '%s': a record of %u pages", t->pages->path, n);
    while (t->extent.n - t->used < n || (from <= locked && locked < from + n)) {
        rc = flush_extent(t, err);
        if (!rc)
            rc = tdb_pages_give(t->pages, t->extent, err);
        if (!rc)
            rc = tdb_pages_take_new(t->pages, t->wanted > n ? t->wanted : n, &t->extent, err);
        if (rc)
            return rc;
        from = t->extent.first;
    }
    return 0;
}

/* The rest of a record, a chain of pages that stand in a row. */
static int put_overflow(struct tdb_tree *t, const uint8_t *rest, size_t size, uint32_t *first,
                        struct st_error *err)
{
    size_t room = t->pages->size - 4;
    uint32_t number;
    uint8_t *page;
    int rc = want_row(t, (uint32_t)((size + room - 1) / room), err);

    *first = t->extent.first + t->used;
    while (!rc && size) {
        size_t n = size < room ? size : room;

        rc = new_page(t, &page, &number, err);
        if (rc)
            break;
        tdb_put32(page, size > room ? number + 1 : 0);
        memcpy(page + 4, rest, n);
        memset(page + 4 + n, 0, room - n);
        rest += n;
        size -= n;
    }
    return rc;
}

int tdb_tree_add(struct tdb_tree *t, int64_t rowid, const uint8_t *record, size_t size, struct st_error *err)
{
    size_t local = local_size(t, size), n = put_varint(t->cell, size);
    uint32_t overflow;
    int rc;

    if (++t->added % COUNTED == 0)
        st_progress_add(COUNTED);
    if (!t->index)
        n += put_varint(t->cell + n, (uint64_t)rowid);
    memcpy(t->cell + n, record, local);
    n += local;
    if (local < size) {
        rc = put_overflow(t, record + local, size - local, &overflow, err);
        if (rc)
            return rc;
        tdb_put32(t->cell + n, overflow);
        n += 4;
    }
    rc = add(t, 0, 0, t->cell, n, err);
    t->rowid = rowid;
    return rc;
}

/* ---- begin and end ---- */

int tdb_tree_open(struct tdb_pages *pages, uint32_t root, bool index, struct tdb_tree **tree,
                  struct st_error *err)
{
    struct tdb_tree *t = calloc(1, sizeof(*t));

    if (t) {
        *t = (struct tdb_tree){.pages = pages, .root = root, .index = index, .wanted = 1};
        t->data = malloc((size_t)EXTENT * pages->size);
        t->cell = malloc(cell_room(t));
    }
    if (!t || !t->data || !t->cell) {
        tdb_tree_abort(t);
        return st_nomem(err, "a tree of the database");
    }
    *tree = t;
    return 0;
}

/* The page at the top takes the root's number, which SQLite's own tables know. */
static int write_root(struct tdb_tree *t, unsigned level, struct st_error *err)
{
    put_head(t, level, &t->levels[level].now);
    return tdb_pages_write(t->pages, t->root, t->levels[level].now.data, 1, err);
}

static int close_level(struct tdb_tree *t, unsigned level, uint32_t *child, struct st_error *err)
{
    struct level *l = &t->levels[level];
    int rc = 0;

    l->now.right = *child;
    if (l->waiting) {
        borrow(l, level);
        rc = pass_full(t, level, err);
    }
    if (rc || level + 1 == LEVELS || !t->levels[level + 1].begun)
        return rc ? rc : write_root(t, level, err);
    return write_page(t, level, &l->now, child, err);
}

int tdb_tree_close(struct tdb_tree *t, struct st_error *err)
{
    uint32_t child = 0;
    int rc = 0;

    for (unsigned level = 0; level < LEVELS && t->levels[level].begun && !rc; level++)
        rc = close_level(t, level, &child, err);
    if (!rc)
        rc = flush_extent(t, err);
    if (!rc)
        rc = tdb_pages_give(t->pages, t->extent, err);
    tdb_tree_abort(t);
    return rc;
}

void tdb_tree_abort(struct tdb_tree *t)
{
    if (!t)
        return;
    for (unsigned level = 0; level < LEVELS; level++) {
        free(t->levels[level].now.data);
        free(t->levels[level].full.data);
        free(t->levels[level].between);
    }
    free(t->cell);
    free(t->data);
    free(t);
}
