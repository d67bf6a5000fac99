/* The process that reads what was inlined where, through libdw. */
#include "base/bisect.h"
#include "decoder/dwarf/debug_tables.h"
#include "decoder/dwarf/inlines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SECONDS = 30, /* for an answer */
    MOST_RANGES = 65536
};

struct function_range {
    uint64_t start, end;

    uint64_t reach; /* the highest end up to and with this one */

    Dwarf_Off die;
};

/* The functions of a compilation unit. */
struct unit {
    const struct image_lines *lines;

    Dwarf_Off die;

    ST_VEC(struct function_range) functions; /* ascending */
};

struct reader {
    struct dec_images *images;

    ST_VEC(struct unit *) units; /* that were read */

    ST_VEC(struct dec_inline_told) nodes;

    ST_VEC(struct dec_inline_span) spans;

    ST_VEC(char) strings;

    Dwarf_Off last; /* the DIE that was looked at last */
};

/* DIEs are looked at in the order in which they stand. Damaged links that lead back would go round. */
static bool goes_on(struct reader *r, Dwarf_Die *die)
{
    Dwarf_Off offset = dwarf_dieoffset(die);

    if (offset <= r->last)
        return false;
    r->last = offset;
    return true;
}

static int by_start(const void *x, const void *y)
{
    const struct function_range *a = x, *b = y;

    return a->start < b->start ? -1 : a->start > b->start;
}

static int add_function(struct unit *unit, Dwarf_Die *die)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    int n = 0;

    while (n++ < MOST_RANGES && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
        struct function_range range = {.start = start, .end = end, .die = dwarf_dieoffset(die)};

        if (start && start < end && st_vec_push(&unit->functions, range))
            return -1;
    }
    return 0;
}

static bool holds_functions(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
           tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_subprogram ||
           tag == DW_TAG_lexical_block;
}

/* The functions below a DIE, those within functions too. */
static int add_functions(struct reader *r, struct unit *unit, Dwarf_Die *around, int depth)
{
    Dwarf_Die die;
    int rc = dwarf_child(around, &die);

    for (; rc == 0 && goes_on(r, &die); rc = dwarf_siblingof(&die, &die)) {
        int tag = dwarf_tag(&die);

        if (tag == DW_TAG_subprogram && add_function(unit, &die))
            return -1;
        if (holds_functions(tag) && depth < DEC_INLINE_DEPTH && add_functions(r, unit, &die, depth + 1))
            return -1;
    }
    return 0;
}

static void sort_functions(struct unit *unit)
{
    uint64_t reach = 0;

    if (unit->functions.n)
        qsort(unit->functions.at, unit->functions.n, sizeof(unit->functions.at[0]), by_start);
    for (size_t i = 0; i < unit->functions.n; i++) {
        if (unit->functions.at[i].end > reach)
            reach = unit->functions.at[i].end;
        unit->functions.at[i].reach = reach;
    }
}

static struct unit *unit_of(struct reader *r, const struct image_lines *lines, Dwarf_Off die)
{
    struct unit *unit;
    Dwarf_Die at;

    for (size_t i = 0; i < r->units.n; i++)
        if (r->units.at[i]->lines == lines && r->units.at[i]->die == die)
            return r->units.at[i];
    unit = calloc(1, sizeof(*unit));
    if (!unit || st_vec_push(&r->units, unit) || !dwarf_offdie(lines->dwarf, die, &at))
        return NULL;
    unit->lines = lines;
    unit->die = die;
    r->last = die;
    add_functions(r, unit, &at, 0);
    sort_functions(unit);
    return unit;
}

/* The function that has the code at an address; 0: none is known. Of functions within one another (they do
 * not share code, but for damage) the one that begins last. */
static Dwarf_Off function_at(const struct unit *unit, uint64_t address)
{
    size_t first = st_bisect(i, unit->functions.n, unit->functions.at[i].start <= address);

    for (size_t i = first; i-- > 0 && unit->functions.at[i].reach > address;)
        if (address < unit->functions.at[i].end)
            return unit->functions.at[i].die;
    return 0;
}

/* Where in the strings; the last ones are looked at, as a function is often inlined several times. */
static int add_string(struct reader *r, const char *text, uint32_t *at)
{
    size_t n = strlen(text) + 1;

    if (r->strings.n + n > DEC_INLINE_STRINGS || st_vec_reserve(&r->strings, n))
        return -1;
    *at = (uint32_t)r->strings.n;
    memcpy(r->strings.at + r->strings.n, text, n);
    r->strings.n += n;
    return 0;
}

static int add_name(struct reader *r, Dwarf_Die *die, uint32_t *at)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    char *readable = name ? dec_demangle(name) : NULL;
    int rc;

    name = readable ? readable : dwarf_diename(die);
    rc = add_string(r, name && *name ? name : "[inlined]", at);
    free(readable);
    return rc;
}

static int add_spans(struct reader *r, Dwarf_Die *die, uint64_t shift)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;

    while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
        struct dec_inline_span span = {start + shift, end + shift, (uint32_t)r->nodes.n - 1};

        if (start < end && (r->spans.n == DEC_INLINE_SPANS || st_vec_push(&r->spans, span)))
            return -1;
    }
    return 0;
}

static int add_node(struct reader *r, Dwarf_Die *die, uint32_t parent, uint64_t shift)
{
    struct dec_inline_told node = {.parent = parent};
    const char *file = dwarf_decl_file(die);
    int line = 0;

    if (r->nodes.n == DEC_INLINE_NODES || add_name(r, die, &node.name) ||
        add_string(r, file ? file : "", &node.file))
        return -1;
    if (!dwarf_decl_line(die, &line) && line > 0)
        node.line = line;
    return st_vec_push(&r->nodes, node) ? -1 : add_spans(r, die, shift);
}

/* What was inlined below a DIE of a function. 0 or -1 (more than anybody writes, or no memory). */
static int add_nodes(struct reader *r, Dwarf_Die *around, uint32_t parent, uint64_t shift, int depth)
{
    Dwarf_Die die;
    int rc = dwarf_child(around, &die);

    for (; rc == 0; rc = dwarf_siblingof(&die, &die)) {
        int tag = dwarf_tag(&die);
        uint32_t within = parent;

        if (!goes_on(r, &die) || depth == DEC_INLINE_DEPTH - 1)
            return -1;
        if (tag == DW_TAG_inlined_subroutine) {
            within = (uint32_t)r->nodes.n;
            if (add_node(r, &die, parent, shift))
                return -1;
        }
        if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
             tag == DW_TAG_catch_block) &&
            add_nodes(r, &die, within, shift, depth + 1))
            return -1;
    }
    return 0;
}

static bool is_known(const struct reader *r, const struct dec_image *image)
{
    for (size_t i = 0; i < dec_images_count(r->images); i++)
        if (dec_images_at(r->images, i) == image)
            return true;
    return false;
}

static void find_answer(struct reader *r, const struct dec_inline_question *q, struct dec_inline_answer *a)
{
    struct image_lines *lines;
    const struct unit_range *range;
    const struct unit *unit;
    Dwarf_Die die;

    if (!is_known(r, q->image))
        return;
    lines = debug_tables_of(image_file_of((struct dec_image *)(uintptr_t)q->image));
    if (!lines || !lines->dwarf)
        return;
    a->has_dwarf = 1;
    range = debug_unit_at(lines, q->address - lines->shift);
    unit = range ? unit_of(r, lines, range->unit) : NULL;
    a->function = unit ? function_at(unit, q->address - lines->shift) : 0;
    r->last = a->function;
    if (!a->function || !dwarf_offdie(lines->dwarf, a->function, &die) ||
        add_nodes(r, &die, DEC_NO_INLINE, lines->shift, 0))
        return;
    a->nodes = (uint32_t)r->nodes.n;
    a->spans = (uint32_t)r->spans.n;
    a->strings = (uint32_t)r->strings.n;
}

/* False: nobody takes it. */
static bool give(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n) {
        ssize_t done = send(fd, at, n, MSG_NOSIGNAL);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

static bool answer(struct reader *r, int fd, const struct dec_inline_question *q)
{
    struct dec_inline_answer a = {0};

    r->nodes.n = 0;
    r->spans.n = 0;
    r->strings.n = 0;
    find_answer(r, q, &a);
    return give(fd, &a, sizeof(a)) && give(fd, r->nodes.at, a.nodes * sizeof(r->nodes.at[0])) &&
           give(fd, r->spans.at, a.spans * sizeof(r->spans.at[0])) && give(fd, r->strings.at, a.strings);
}

void dec_inlines_serve(struct dec_images *images, int fd)
{
    struct reader r = {.images = images};
    struct dec_inline_question q;
    bool more = true;

    while (more && recv(fd, &q, sizeof(q), MSG_WAITALL) == (ssize_t)sizeof(q)) {
        alarm(SECONDS);
        more = answer(&r, fd, &q);
        alarm(0);
    }
    for (size_t i = 0; i < r.units.n; i++) {
        st_vec_free(&r.units.at[i]->functions);
        free(r.units.at[i]);
    }
    st_vec_free(&r.units);
    st_vec_free(&r.nodes);
    st_vec_free(&r.spans);
    st_vec_free(&r.strings);
}
