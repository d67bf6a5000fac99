/* Interns symbols and modules in the order in which they are met. */
#include "decoder/model/symbols.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum {
    CACHE_LINES = 16384 /* a power of two */
};

/* A symbol where a process has it mapped. */
struct placed {
    struct {
        const struct dec_symbol *symbol;

        uint64_t start;
    } key;

    struct dec_function function;

    UT_hash_handle hh;
};

/* The parts of one function have one family: that of its name in the image. */
struct family {
    char *key; /* image and name */

    uint32_t id;

    UT_hash_handle hh;
};

/* A function that was inlined. */
struct inlined_symbol {
    char *key; /* module, place in the source, name */

    uint32_t index;

    UT_hash_handle hh;
};

struct kernel_symbol {
    uint64_t start;

    uint32_t index;

    UT_hash_handle hh;
};

struct line {
    const struct dec_space *space;

    uint64_t address, since, until;

    const struct dec_function *function;
};

struct dec_symbols_view {
    struct dec_symbols *symbols;

    struct line cache[CACHE_LINES];
};

/* Shared by views: what was handed out does not change; the rest is behind the lock. */
struct dec_symbols {
    pthread_mutex_t lock;

    ST_VEC(struct dec_symbol_row) rows;

    ST_VEC(struct dec_module_row) modules;

    struct placed *placed;

    struct family *families;

    struct kernel_symbol *kernel;

    struct inlined_symbol *inlined;

    struct dec_inlines *inlines; /* NULL: they are not wanted */

    ST_VEC(char *) texts; /* names made here */

    uint32_t next_family;

    uint32_t pseudo[DEC_PSEUDO_COUNT]; /* 1 + index; 0: not met yet */

    struct dec_function *nowhere; /* what is mapped nowhere */

    struct dec_symbols_view own;
};

int dec_symbols_new(struct dec_symbols **symbols, struct st_error *err)
{
    struct dec_symbols *s = calloc(1, sizeof(*s));

    if (!s)
        return st_nomem(err, "the symbols");
    pthread_mutex_init(&s->lock, NULL);
    s->own.symbols = s;
    *symbols = s;
    return 0;
}

struct dec_symbols_view *dec_symbols_own(struct dec_symbols *s)
{
    return &s->own;
}

int dec_symbols_view_new(struct dec_symbols *s, struct dec_symbols_view **view, struct st_error *err)
{
    struct dec_symbols_view *v = calloc(1, sizeof(*v));

    if (!v)
        return st_nomem(err, "the symbols");
    v->symbols = s;
    *view = v;
    return 0;
}

void dec_symbols_view_free(struct dec_symbols_view *view)
{
    free(view);
}

void dec_symbols_free(struct dec_symbols *s)
{
    struct placed *p, *next_placed;
    struct family *f, *next_family;
    struct kernel_symbol *k, *next_kernel;
    struct inlined_symbol *i, *next_inlined;

    if (!s)
        return;
    HASH_ITER(hh, s->placed, p, next_placed)
    {
        HASH_DEL(s->placed, p);
        free(p);
    }
    HASH_ITER(hh, s->families, f, next_family)
    {
        HASH_DEL(s->families, f);
        free(f->key);
        free(f);
    }
    HASH_ITER(hh, s->kernel, k, next_kernel)
    {
        HASH_DEL(s->kernel, k);
        free(k);
    }
    HASH_ITER(hh, s->inlined, i, next_inlined)
    {
        HASH_DEL(s->inlined, i);
        free(i->key);
        free(i);
    }
    for (size_t i = 0; i < s->texts.n; i++)
        free(s->texts.at[i]);
    st_vec_free(&s->texts);
    st_vec_free(&s->rows);
    st_vec_free(&s->modules);
    free(s->nowhere);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

size_t dec_symbols_count(const struct dec_symbols *s)
{
    return s->rows.n;
}

const struct dec_symbol_row *dec_symbols_at(const struct dec_symbols *s, size_t index)
{
    return &s->rows.at[index];
}

size_t dec_modules_count(const struct dec_symbols *s)
{
    return s->modules.n;
}

const struct dec_module_row *dec_modules_at(const struct dec_symbols *s, size_t index)
{
    return &s->modules.at[index];
}

size_t dec_family_length(const char *name)
{
    size_t length = strlen(name);
    const char *clone = strstr(name, " [clone .cold");
    const char *cold = NULL;

    if (clone)
        return (size_t)(clone - name);
    for (const char *at = strstr(name, ".cold"); at; at = strstr(at + 1, ".cold"))
        cold = at;
    if (cold && (!cold[5] || (cold[5] == '.' && strspn(cold + 6, "0123456789") == strlen(cold + 6))))
        return (size_t)(cold - name);
    return length;
}

static bool in_list(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(name, *list))
            return true;
    return false;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && !strcmp(name + n - m, end);
}

/* OCaml 5: runtime/amd64.S. */
static enum dec_role fiber_role(const char *name)
{
    if (!strcmp(name, "caml_runstack"))
        return DEC_ROLE_FIBER_STARTER;
    if (!strcmp(name, "caml_perform") || !strcmp(name, "caml_reperform"))
        return DEC_ROLE_FIBER_PERFORMER;
    if (!strcmp(name, "caml_c_call"))
        return DEC_ROLE_FIBER_UNHANDLED;
    return strcmp(name, "caml_resume") ? DEC_ROLE_PLAIN : DEC_ROLE_FIBER_RESUMER;
}

/* Thunks: arch/x86/lib/retpoline.S of the kernel, gcc's and clang's -mretpoline. Unwinders: glibc, libgcc,
 * libunwind, OCaml's runtime. */
enum dec_role dec_role_of(const char *name, bool kernel)
{
    static const char *const unwinders[] = {"longjmp",
                                            "_longjmp",
                                            "siglongjmp",
                                            "__longjmp",
                                            "__longjmp_chk",
                                            "____longjmp_chk",
                                            "__libc_longjmp",
                                            "__libc_siglongjmp",
                                            "_Unwind_RaiseException",
                                            "_Unwind_Resume_or_Rethrow",
                                            "_Unwind_ForcedUnwind",
                                            "caml_raise_exn",
                                            NULL};

    if (!strncmp(name, "__x86_indirect_", 15) || !strncmp(name, "__llvm_retpoline_", 17) ||
        !strncmp(name, "__llvm_external_retpoline_", 26))
        return DEC_ROLE_INDIRECT_THUNK;
    if (kernel && (ends_with(name, "return_thunk") || ends_with(name, "_safe_ret") ||
                   !strcmp(name, "__x86_return_skl")))
        return DEC_ROLE_RETURN_THUNK;
    if (!strcmp(name, "__x86_return_thunk") || !strcmp(name, "__x86_return_thunk_ecx"))
        return DEC_ROLE_RETURN_THUNK; /* gcc's -mfunction-return=thunk */
    if (kernel && !strcmp(name, "__schedule"))
        return DEC_ROLE_SCHEDULER;
    if (!kernel && !strcmp(name, "_Unwind_Resume"))
        return DEC_ROLE_RESUMER;
    if (!kernel && fiber_role(name) != DEC_ROLE_PLAIN)
        return fiber_role(name);
    if (!kernel && in_list(name, unwinders))
        return DEC_ROLE_UNWINDER;
    return DEC_ROLE_PLAIN;
}

/* A placeholder with an offset is a function that the unwind table knows, or a hole that begins there. */
static enum dec_role role_of(const struct dec_symbol *symbol)
{
    if (symbol->flags & DEC_SYM_MADE_UP)
        return strchr(symbol->name, '+') ? DEC_ROLE_PLAIN : DEC_ROLE_UNKNOWN;
    return dec_role_of(symbol->name, symbol->image->kernel);
}

static struct family *find_family(struct dec_symbols *s, const struct dec_symbol *symbol, size_t length)
{
    struct family *f = NULL;
    char *key = NULL;
    int n = asprintf(&key, "%p %.*s", (const void *)symbol->image, (int)length, symbol->name);

    if (n < 0)
        return NULL;
    HASH_FIND(hh, s->families, key, (size_t)n, f);
    if (f) {
        free(key);
        return f;
    }
    f = calloc(1, sizeof(*f));
    if (f) {
        f->key = key;
        f->id = s->next_family++;
        HASH_ADD_KEYPTR(hh, s->families, f->key, (size_t)n, f);
    }
    if (!f || !f->hh.tbl) {
        free(f);
        free(key);
        return NULL;
    }
    return f;
}

/* Functions that have only their name in common (static ones) are not the same: dec_same_family(). */
static int family_of(struct dec_symbols *s, const struct dec_symbol *symbol, struct dec_function *function)
{
    size_t length = dec_family_length(symbol->name);
    struct family *f = find_family(s, symbol, length);

    if (!f)
        return -1;
    function->family = f->id;
    function->whole = !symbol->name[length];
    return 0;
}

static int add_module(struct dec_symbols *s, const char *name, const char *path, bool kernel, uint32_t *index)
{
    struct dec_module_row row = {.name = name, .path = path, .kernel = kernel};

    *index = (uint32_t)s->modules.n;
    return st_vec_push(&s->modules, row);
}

static int find_module(struct dec_symbols *s, const char *name, bool kernel, uint32_t *index)
{
    for (size_t i = 0; i < s->modules.n; i++)
        if (s->modules.at[i].kernel == kernel && !strcmp(s->modules.at[i].name, name)) {
            *index = (uint32_t)i;
            return 0;
        }
    return add_module(s, name, "", kernel, index);
}

/* The image's tag is 1 + the index of its module. The core of the kernel is [kernel], wherever its bytes came
 * from. */
static int module_of(struct dec_symbols *s, struct dec_image *image, uint32_t *index)
{
    struct dec_module_row *row;

    if (image->tag) {
        *index = (uint32_t)image->tag - 1;
        return 0;
    }
    if (image->kernel && (image->name[0] != '[' || !strncmp(image->name, "[kernel", 7))) {
        if (find_module(s, "[kernel]", true, index))
            return -1;
    } else if (add_module(s, image->name, image->path, image->kernel, index)) {
        return -1;
    }
    row = &s->modules.at[*index];
    for (int i = 0; i < image->build_id_size && !image->kernel; i++)
        sprintf(row->build_id + 2 * i, "%02x", image->build_id[i]);
    image->tag = *index + 1;
    return 0;
}

/* The symbol's tag is 1 + its index. */
static int symbol_of(struct dec_symbols *s, struct dec_symbol *symbol, uint32_t *index)
{
    struct dec_symbol_row row = {
        .name = symbol->name, .address = symbol->start, .size = symbol->size, .image = symbol->image};

    if (symbol->tag) {
        *index = (uint32_t)symbol->tag - 1;
        return 0;
    }
    if (symbol->module ? find_module(s, symbol->module, true, &row.module)
                       : module_of(s, symbol->image, &row.module))
        return -1;
    if (st_vec_push(&s->rows, row))
        return -1;
    *index = (uint32_t)s->rows.n - 1;
    symbol->tag = *index + 1;
    return 0;
}

static const struct dec_function *nowhere(struct dec_symbols *s)
{
    struct dec_symbol_row row = {.name = "[unknown]"};

    if (s->nowhere)
        return s->nowhere;
    if (find_module(s, "[unknown]", false, &row.module) || st_vec_push(&s->rows, row))
        return NULL;
    s->nowhere = calloc(1, sizeof(*s->nowhere));
    if (s->nowhere)
        *s->nowhere = (struct dec_function){.symbol = (uint32_t)s->rows.n - 1,
                                            .family = s->next_family++,
                                            .role = DEC_ROLE_UNKNOWN,
                                            .guessed = true};
    return s->nowhere;
}

static const struct dec_function *place(struct dec_symbols *s, const struct dec_place *at)
{
    struct placed *p = NULL;
    struct placed probe;

    memset(&probe, 0, sizeof(probe));
    probe.key.symbol = at->symbol;
    probe.key.start = at->start;
    HASH_FIND(hh, s->placed, &probe.key, sizeof(probe.key), p);
    if (p)
        return &p->function;
    p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->key = probe.key;
    p->function.start = at->start;
    p->function.end = at->start + at->size;
    p->function.role = role_of(at->symbol);
    p->function.guessed = at->symbol->flags & DEC_SYM_MADE_UP;
    p->function.own = at->symbol->start;
    if (s->inlines && at->symbol->size)
        p->function.inlined = dec_inlines_tree(s->inlines, at->symbol->image, at->symbol->start);
    if (!symbol_of(s, at->symbol, &p->function.symbol) && !family_of(s, at->symbol, &p->function))
        HASH_ADD(hh, s->placed, key, sizeof(p->key), p);
    if (!p->hh.tbl) {
        free(p);
        return NULL;
    }
    return &p->function;
}

static const struct dec_function *place_once(struct dec_symbols *s, const struct dec_place *at)
{
    const struct dec_function *function;

    pthread_mutex_lock(&s->lock);
    function = at->mapping && at->symbol ? place(s, at) : nowhere(s);
    pthread_mutex_unlock(&s->lock);
    return function;
}

const struct dec_function *dec_symbols_function_by(struct dec_symbols_view *v, const struct dec_space *space,
                                                   uint64_t time, uint64_t address)
{
    uint64_t hash = (address ^ (uint64_t)(uintptr_t)space) * 0x9e3779b97f4a7c15u;
    struct line *line = &v->cache[hash >> 50 & (CACHE_LINES - 1)];
    struct dec_place at = {0};

    if (line->address == address && line->space == space && line->function && line->since <= time &&
        time < line->until)
        return line->function;
    if (space)
        dec_space_symbol(space, time, address, &at);
    if (!at.mapping || !at.symbol)
        return place_once(v->symbols, &at);
    *line = (struct line){space, address, at.mapping->since, at.mapping->until, place_once(v->symbols, &at)};
    if (line->since > time)
        line->since = time;
    return line->function;
}

const struct dec_function *dec_symbols_function(struct dec_symbols *s, const struct dec_space *space,
                                                uint64_t time, uint64_t address)
{
    return dec_symbols_function_by(&s->own, space, time, address);
}

void dec_symbols_set_inlines(struct dec_symbols *s, struct dec_inlines *inlines)
{
    s->inlines = inlines;
}

/* Takes the key over. */
static struct inlined_symbol *add_inlined(struct dec_symbols *s, char *key, size_t n)
{
    struct inlined_symbol *i = calloc(1, sizeof(*i));

    if (i) {
        i->key = key;
        i->index = (uint32_t)s->rows.n;
        HASH_ADD_KEYPTR(hh, s->inlined, i->key, n, i);
    }
    if (i && i->hh.tbl)
        return i;
    free(key);
    free(i);
    return NULL;
}

/* The names stay with the trees. */
uint32_t dec_symbols_inlined(struct dec_symbols *s, const struct dec_function *function, uint32_t node)
{
    struct dec_inline_node *n = &function->inlined->nodes[node];
    struct dec_symbol_row row = {
        .module = s->rows.at[function->symbol].module, .name = n->name, .file = n->file, .line = n->line};
    struct inlined_symbol *i = NULL;
    char *key = NULL;
    int length;

    if (n->symbol != UINT32_MAX)
        return n->symbol;
    length = asprintf(&key, "%u:%s:%d:%s", row.module, n->file, n->line, n->name);
    if (length < 0)
        return UINT32_MAX;
    HASH_FIND(hh, s->inlined, key, (size_t)length, i);
    if (i) {
        free(key);
    } else {
        if (st_vec_reserve(&s->rows, 1)) {
            free(key);
            return UINT32_MAX;
        }
        i = add_inlined(s, key, (size_t)length);
        if (!i)
            return UINT32_MAX;
        s->rows.at[s->rows.n++] = row;
    }
    n->symbol = i->index;
    return n->symbol;
}

static uint32_t add_pseudo(struct dec_symbols *s, enum dec_pseudo pseudo)
{
    struct dec_symbol_row row = {.name = dec_pseudo_name(pseudo)};

    if (find_module(s, "[kernel]", true, &row.module) || st_vec_push(&s->rows, row))
        return UINT32_MAX;
    s->pseudo[pseudo] = (uint32_t)s->rows.n;
    return s->pseudo[pseudo] - 1;
}

uint32_t dec_symbols_pseudo(struct dec_symbols *s, enum dec_pseudo pseudo)
{
    uint32_t index;

    pthread_mutex_lock(&s->lock);
    index = s->pseudo[pseudo] ? s->pseudo[pseudo] - 1 : add_pseudo(s, pseudo);
    pthread_mutex_unlock(&s->lock);
    return index;
}

/* "name [module]" -> "name", "[module]". The texts live as long as `s`. 0 or -1. */
static int split_name(struct dec_symbols *s, const char *text, const char **name, const char **module)
{
    const char *bracket = strstr(text, " [");
    char *copy;

    *name = text;
    *module = "[kernel]";
    if (!bracket)
        return 0;
    copy = strdup(text);
    if (!copy || st_vec_push(&s->texts, copy)) {
        free(copy);
        return -1;
    }
    copy[bracket - text] = '\0';
    *name = copy;
    *module = bracket + 1;
    return 0;
}

uint32_t dec_symbols_kernel(struct dec_symbols *s, const char *text, uint64_t start)
{
    struct dec_symbol_row row = {.address = start};
    struct kernel_symbol *k = NULL;
    const char *module;

    HASH_FIND(hh, s->kernel, &start, sizeof(start), k);
    if (k)
        return k->index;
    if (split_name(s, text, &row.name, &module) || find_module(s, module, true, &row.module) ||
        st_vec_push(&s->rows, row))
        return UINT32_MAX;
    k = calloc(1, sizeof(*k));
    if (!k)
        return UINT32_MAX;
    k->start = start;
    k->index = (uint32_t)s->rows.n - 1;
    HASH_ADD(hh, s->kernel, start, sizeof(k->start), k);
    if (!k->hh.tbl) {
        free(k);
        return UINT32_MAX;
    }
    return k->index;
}
