/* Symbol tables of code files: load, choose, look up. C++ and Rust names are made readable by libiberty. */
#include "decoder/image/symbols.h"
#include "base/bisect.h"
#include "decoder/image/image_impl.h"

#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Without memory the element is not added, and its table pointer stays NULL. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A symbol as it is kept; the public part comes first. */
struct entry {
    struct dec_symbol pub;

    char *made; /* the readable name, if it was made; then pub.name points to it */

    uint32_t bind; /* enum dec_elf_bind */

    size_t order; /* in the table it comes from */

    bool sizeless; /* reaches to the next symbol */

    bool shown; /* pub.name is final */

    UT_hash_handle hh; /* placeholders, by pub.start */
};

struct image_symbols {
    struct dec_image *image;

    dec_elf_ranges segments, sections;

    dec_elf_addresses unwind; /* function starts that the unwind table knows, ascending */

    ST_VEC(struct entry *) sorted; /* by start; of equal starts the best last */

    uint64_t *reach; /* for each of sorted: the highest end up to and with it */

    bool dirty; /* sorted and reach must be made again */

    struct entry *block; /* the entries from the file */

    size_t nblock;

    char *names; /* of block */

    struct entry *made_up; /* hash of placeholders */
};

/* What is collected while a file is read. */
struct collected {
    ST_VEC(struct entry) entries;

    ST_VEC(size_t) at; /* of each entry's name in text */

    ST_VEC(char) text;

    uint64_t shift; /* added to every address */
};

static unsigned underscores(const char *name)
{
    unsigned n = 0;
    while (name[n] == '_')
        n++;
    return n;
}

/* < 0: a is the worse name for the same address. The rules of symbols.h, case 1. */
static int compare_names(const struct entry *a, const struct entry *b)
{
    if (a->sizeless != b->sizeless)
        return a->sizeless ? -1 : 1;
    if ((a->bind ^ b->bind) & DEC_ELF_WEAK)
        return a->bind & DEC_ELF_WEAK ? -1 : 1;
    if ((a->bind ^ b->bind) & DEC_ELF_GLOBAL)
        return a->bind & DEC_ELF_GLOBAL ? 1 : -1;
    unsigned ua = underscores(a->pub.name), ub = underscores(b->pub.name);
    if (ua != ub)
        return ua > ub ? -1 : 1;
    size_t la = strlen(a->pub.name), lb = strlen(b->pub.name);
    if (la != lb)
        return la < lb ? -1 : 1;
    return a->order < b->order ? 1 : -1;
}

static int by_start(const void *x, const void *y)
{
    const struct entry *a = *(struct entry *const *)x, *b = *(struct entry *const *)y;
    if (a->pub.start != b->pub.start)
        return a->pub.start < b->pub.start ? -1 : 1;
    return compare_names(a, b);
}

static uint64_t end_of(const struct dec_symbol *symbol)
{
    return symbol->size > UINT64_MAX - symbol->start ? UINT64_MAX : symbol->start + symbol->size;
}

static const struct dec_elf_range *range_of(const dec_elf_ranges *ranges, uint64_t address)
{
    for (size_t i = 0; i < ranges->n; i++) {
        if (address >= ranges->at[i].address && address - ranges->at[i].address < ranges->at[i].size)
            return &ranges->at[i];
    }
    return NULL;
}

/* Gives the symbol sorted[i], which has no size, what lies before the next one in its section. */
static void stretch(struct image_symbols *symbols, size_t i)
{
    struct entry *entry = symbols->sorted.at[i];
    const struct dec_elf_range *section = range_of(&symbols->sections, entry->pub.start);
    uint64_t end = section ? section->address + section->size : UINT64_MAX;
    for (size_t next = i + 1; next < symbols->sorted.n; next++) {
        uint64_t start = symbols->sorted.at[next]->pub.start;
        if (start == entry->pub.start)
            continue;
        if (start < end)
            end = start;
        break;
    }
    entry->pub.size = end - entry->pub.start;
}

static int arrange(struct image_symbols *symbols)
{
    uint64_t *reach = realloc(symbols->reach, (symbols->sorted.n + 1) * sizeof(*reach));
    if (!reach)
        return ST_ENOMEM;
    symbols->reach = reach;
    if (symbols->sorted.n)
        qsort(symbols->sorted.at, symbols->sorted.n, sizeof(*symbols->sorted.at), by_start);
    uint64_t highest = 0;
    for (size_t i = 0; i < symbols->sorted.n; i++) {
        if (symbols->sorted.at[i]->sizeless)
            stretch(symbols, i);
        uint64_t end = end_of(&symbols->sorted.at[i]->pub);
        highest = end > highest ? end : highest;
        reach[i] = highest;
    }
    symbols->dirty = false;
    return 0;
}

static int collect(void *ctx, const struct dec_elf_symbol *symbol)
{
    struct collected *c = ctx;
    size_t length = strlen(symbol->name) + 1;
    struct entry entry = {.bind = symbol->flags & (DEC_ELF_WEAK | DEC_ELF_GLOBAL),
                          .sizeless = symbol->size == 0};
    entry.pub.start = symbol->address + c->shift;
    entry.pub.size = symbol->size;
    entry.pub.flags = symbol->flags & DEC_ELF_PLT ? DEC_SYM_PLT : 0;
    if (st_vec_reserve(&c->text, length) || st_vec_reserve(&c->entries, 1) || st_vec_push(&c->at, c->text.n))
        return ST_ENOMEM;
    c->entries.at[c->entries.n++] = entry;
    memcpy(c->text.at + c->text.n, symbol->name, length);
    c->text.n += length;
    return 0;
}

static void free_collected(struct collected *c)
{
    st_vec_free(&c->entries);
    st_vec_free(&c->at);
    st_vec_free(&c->text);
}

/* Takes the collected entries over into the table. */
static int take(struct image_symbols *symbols, struct collected *c)
{
    if (st_vec_reserve(&symbols->sorted, c->entries.n))
        return ST_ENOMEM;
    symbols->block = c->entries.at;
    symbols->nblock = c->entries.n;
    symbols->names = c->text.at;
    c->entries.at = NULL;
    c->text.at = NULL;
    for (size_t i = 0; i < symbols->nblock; i++) {
        struct entry *entry = &symbols->block[i];
        entry->pub.name = symbols->names + c->at.at[i];
        entry->pub.image = symbols->image;
        entry->order = i;
        symbols->sorted.at[symbols->sorted.n++] = entry;
    }
    return 0;
}

/* The full table may stand in a separate file, possibly made for other addresses. */
static int collect_debug(struct image_file *file, const struct dec_elf *elf, struct collected *c, bool *found)
{
    struct dec_elf debug;
    int fd = image_find_debug(file, elf);
    if (fd < 0 || dec_elf_open_fd(fd, &debug)) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    uint64_t text = dec_elf_text(elf), other = dec_elf_text(&debug);
    c->shift = text && other ? text - other : 0;
    int rc = dec_elf_symbols(&debug, collect, c, found);
    c->shift = 0;
    if (!*found)
        c->entries.n = c->at.n = c->text.n = 0;
    dec_elf_close(&debug);
    close(fd);
    return rc;
}

static int load_elf(struct image_file *file, struct image_symbols *symbols, const struct dec_elf *elf)
{
    struct collected c = {0};
    bool full = dec_elf_has_symtab(elf);
    int rc = dec_elf_segments(elf, &symbols->segments);
    if (rc == 0)
        rc = dec_elf_code_sections(elf, &symbols->sections);
    if (rc == 0)
        rc = dec_elf_unwind_starts(elf, &symbols->unwind);
    if (rc == 0 && !full)
        rc = collect_debug(file, elf, &c, &full);
    if (rc == 0 && c.entries.n == 0)
        rc = dec_elf_symbols(elf, collect, &c, NULL);
    if (rc == 0 && !full)
        rc = dec_elf_go(elf, collect, &c);
    if (rc == 0)
        rc = dec_elf_plt(elf, collect, &c);
    if (rc == 0)
        rc = take(symbols, &c);
    free_collected(&c);
    return rc;
}

static struct image_symbols *new_symbols(struct image_file *file)
{
    struct image_symbols *symbols = calloc(1, sizeof(*symbols));
    if (!symbols)
        return NULL;
    symbols->image = &file->pub;
    symbols->dirty = true;
    return symbols;
}

/* The tables of an image, read at the first call. NULL without memory. */
static struct image_symbols *symbols_of(struct image_file *file)
{
    struct dec_elf elf;
    if (file->symbols)
        return file->symbols;
    struct image_symbols *symbols = new_symbols(file);
    if (!symbols)
        return NULL;
    int rc = ST_EBADFILE;
    if (file->bytes)
        rc = dec_elf_open_bytes(file->bytes, file->pub.size, &elf);
    else if (file->fd >= 0)
        rc = dec_elf_open_fd(file->fd, &elf);
    if (rc == 0) {
        rc = load_elf(file, symbols, &elf);
        dec_elf_close(&elf);
    }
    if (rc == ST_ENOMEM) {
        image_symbols_free(symbols);
        return NULL;
    }
    file->symbols = symbols;
    return symbols;
}

void image_symbols_free(struct image_symbols *symbols)
{
    struct entry *entry, *next;
    if (!symbols)
        return;
    HASH_ITER(hh, symbols->made_up, entry, next)
    {
        HASH_DEL(symbols->made_up, entry);
        free(entry->made);
        free(entry);
    }
    for (size_t i = 0; i < symbols->sorted.n; i++) {
        entry = symbols->sorted.at[i];
        free(entry->made);
        if (!symbols->block || entry < symbols->block || entry >= symbols->block + symbols->nblock)
            free(entry);
    }
    st_vec_free(&symbols->sorted);
    st_vec_free(&symbols->segments);
    st_vec_free(&symbols->sections);
    st_vec_free(&symbols->unwind);
    free(symbols->reach);
    free(symbols->block);
    free(symbols->names);
    free(symbols);
}

uint64_t dec_image_address(struct dec_image *image, uint64_t offset)
{
    enum { PAGE = 4096 };
    struct image_file *file = image_file_of(image);
    const struct image_symbols *symbols;
    pthread_mutex_lock(&file->store->symbols_lock);
    symbols = symbols_of(file); /* its segments do not change */
    pthread_mutex_unlock(&file->store->symbols_lock);
    for (size_t i = 0; symbols && i < symbols->segments.n; i++) {
        const struct dec_elf_range *segment = &symbols->segments.at[i];
        uint64_t start = segment->offset & ~(uint64_t)(PAGE - 1);
        uint64_t size = segment->offset - start + segment->size;
        if (offset >= start && offset - start < ((size + PAGE - 1) & ~(uint64_t)(PAGE - 1)))
            return offset - segment->offset + segment->address;
    }
    return offset;
}

/* Both in one piece of memory. */
static char *copy_names(const char *name, const char *module)
{
    size_t length = strlen(name) + 1, rest = module ? strlen(module) + 1 : 0;
    char *copy = malloc(length + rest);
    if (copy)
        memcpy(copy, name, length);
    if (copy && module)
        memcpy(copy + length, module, rest);
    return copy;
}

int dec_image_add_symbol(struct dec_image *image, uint64_t start, uint64_t size, const char *name,
                         const char *module, struct st_error *err)
{
    struct image_symbols *symbols = symbols_of(image_file_of(image));
    struct entry *entry = symbols ? calloc(1, sizeof(*entry)) : NULL;
    char *copy = entry ? copy_names(name, module) : NULL;
    if (!copy || st_vec_reserve(&symbols->sorted, 1)) {
        free(entry);
        free(copy);
        return st_nomem(err, "a symbol");
    }
    entry->made = copy;
    entry->shown = true;
    entry->pub = (struct dec_symbol){.name = copy,
                                     .start = start,
                                     .size = size,
                                     .image = image,
                                     .module = module ? copy + strlen(copy) + 1 : NULL};
    entry->bind = DEC_ELF_GLOBAL;
    entry->sizeless = size == 0;
    entry->order = symbols->sorted.n;
    symbols->sorted.at[symbols->sorted.n++] = entry;
    symbols->dirty = true;
    return 0;
}

/* "memcpy@@GLIBC_2.14", as .symtab spells versions, is memcpy whatever the file's table is; "_Zfoo@plt" is
 * foo@plt. */
static char *readable_name(const struct entry *entry)
{
    const char *name = entry->pub.name;
    const char *at = strchr(name, '@');
    const char *suffix = entry->pub.flags & DEC_SYM_PLT ? "@plt" : "";
    size_t length = at && at != name ? (size_t)(at - name) : strlen(name);
    char *plain = strndup(name, length), *whole;
    char *demangled = plain ? dec_demangle(plain) : NULL;
    if (!plain || asprintf(&whole, "%s%s", demangled ? demangled : plain, suffix) < 0)
        whole = NULL;
    free(demangled);
    free(plain);
    return whole;
}

/* The readable name is made when it is first asked for: most symbols never are. */
static struct dec_symbol *show(struct entry *entry)
{
    if (entry->shown)
        return &entry->pub;
    entry->shown = true;
    char *readable = readable_name(entry);
    if (readable) {
        free(entry->made);
        entry->made = readable;
        entry->pub.name = readable;
    }
    return &entry->pub;
}

/* The first of sorted whose start is above the address. */
static size_t above(const struct image_symbols *symbols, uint64_t address)
{
    return st_bisect(i, symbols->sorted.n, symbols->sorted.at[i]->pub.start <= address);
}

static size_t unwind_above(const struct image_symbols *symbols, uint64_t address)
{
    return st_bisect(i, symbols->unwind.n, symbols->unwind.at[i] <= address);
}

/* The hole around an address that no symbol holds: [*start, *end). next is above(address). */
static void hole(const struct image_symbols *symbols, const struct dec_elf_range *section, uint64_t address,
                 size_t next, uint64_t *start, uint64_t *end)
{
    *start = section->address;
    *end = section->address + section->size;
    if (next < symbols->sorted.n && symbols->sorted.at[next]->pub.start < *end)
        *end = symbols->sorted.at[next]->pub.start;
    if (next > 0 && symbols->reach[next - 1] <= address && symbols->reach[next - 1] > *start)
        *start = symbols->reach[next - 1];
    size_t function = unwind_above(symbols, address);
    if (function > 0 && symbols->unwind.at[function - 1] > *start)
        *start = symbols->unwind.at[function - 1];
    if (function < symbols->unwind.n && symbols->unwind.at[function] < *end)
        *end = symbols->unwind.at[function];
}

/* "[libfoo.so+0x1234]"; of "[vdso]" the brackets are dropped first. */
static char *hole_name(const struct dec_image *image, uint64_t start)
{
    bool special = image->name[0] == '[';
    size_t length = strlen(image->name);
    char *name;
    if (special && length > 1 && image->name[length - 1] == ']')
        length -= 2;
    if (length > 280)
        length = 280;
    if (asprintf(&name, "[%.*s+0x%llx]", (int)length, image->name + special, (unsigned long long)start) < 0)
        return NULL;
    return name;
}

/* The placeholder for a hole, made at the first call; NULL without memory. */
static struct dec_symbol *placeholder(struct image_symbols *symbols, uint64_t start, uint64_t size)
{
    struct entry *entry;
    HASH_FIND(hh, symbols->made_up, &start, sizeof(start), entry);
    if (entry)
        return &entry->pub;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return NULL;
    entry->made = hole_name(symbols->image, start);
    entry->pub = (struct dec_symbol){
        .name = entry->made, .start = start, .size = size, .image = symbols->image, .flags = DEC_SYM_MADE_UP};
    if (entry->made)
        HASH_ADD(hh, symbols->made_up, pub.start, sizeof(start), entry);
    if (entry->hh.tbl)
        return &entry->pub;
    free(entry->made);
    free(entry);
    return NULL;
}

/* A lookup in tables that are in order; NULL: nothing better than the image's own placeholder. */
static struct dec_symbol *find(struct image_symbols *symbols, uint64_t address)
{
    size_t next = above(symbols, address);
    for (size_t i = next; i > 0 && symbols->reach[i - 1] > address; i--) {
        struct entry *entry = symbols->sorted.at[i - 1];
        if (address - entry->pub.start < entry->pub.size)
            return show(entry);
    }
    const struct dec_elf_range *section = range_of(&symbols->sections, address);
    if (!section)
        return NULL;
    uint64_t start, end;
    hole(symbols, section, address, next, &start, &end);
    return placeholder(symbols, start, end - start);
}

struct dec_symbol *dec_image_symbol(struct dec_image *image, uint64_t address)
{
    struct image_file *file = image_file_of(image);
    struct dec_symbol *symbol = NULL;
    struct image_symbols *symbols;
    pthread_mutex_lock(&file->store->symbols_lock);
    symbols = symbols_of(file);
    if (symbols && (!symbols->dirty || arrange(symbols) == 0))
        symbol = find(symbols, address);
    pthread_mutex_unlock(&file->store->symbols_lock);
    return symbol ? symbol : &file->whole;
}

char *dec_demangle(const char *name)
{
    bool rust = name[0] == '_' && name[1] == 'R';
    bool itanium = name[0] == '_' && name[1] == 'Z';
    if (!rust && !itanium)
        return NULL;
    /* Rust's older scheme looks like C++ with a hash at the end, so it is tried first. */
    char *readable = rust_demangle(name, DMGL_NO_OPTS);
    return readable || rust ? readable : cplus_demangle_v3(name, DMGL_NO_OPTS);
}
