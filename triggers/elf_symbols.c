/* Symbols of code files, by libelf. Run by a child without privilege. */
#include "base/nearest.h"
#include "base/vec.h"
#include "triggers/elf_read.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MOST 400000 /* that are compared for "did you mean" */

/* NULL with errno: memory ran out. */
static Elf *open_elf(int fd)
{
    errno = 0;
    return elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
}

static ssize_t no_elf(void)
{
    errno = errno ? errno : EIO;
    return -1;
}

/* A text with its end. */
static bool is_text(const void *question, size_t size)
{
    return size && !((const char *)question)[size - 1];
}

/* ---- tables of symbols ---- */

struct table {
    Elf *elf;

    Elf_Data *data;

    size_t n, strings;
};

/* Returns false to end. */
typedef bool symbol_fn(void *ctx, const struct table *t, const GElf_Sym *symbol, const char *name);

/* Each function with a name that is defined there. */
static bool each_symbol(const struct table *t, symbol_fn *each, void *ctx)
{
    for (size_t i = 0; i < t->n && i <= INT_MAX; i++) {
        const char *name;
        GElf_Sym symbol;

        if (!gelf_getsym(t->data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
            symbol.st_shndx == SHN_UNDEF || !symbol.st_value)
            continue;
        name = elf_strptr(t->elf, t->strings, symbol.st_name);
        if (name && *name && !each(ctx, t, &symbol, name))
            return false;
    }
    return true;
}

/* Of all tables of a file. Returns 0, or -1 with ENOMEM. */
static int each_function(Elf *elf, symbol_fn *each, void *ctx)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section))) {
        struct table t = {.elf = elf};
        GElf_Shdr head;

        if (!gelf_getshdr(section, &head) || (head.sh_type != SHT_SYMTAB && head.sh_type != SHT_DYNSYM))
            continue;
        errno = 0;
        t.data = elf_getdata(section, NULL);
        if (!t.data && errno == ENOMEM)
            return -1;
        t.n = t.data && head.sh_entsize ? t.data->d_size / head.sh_entsize : 0;
        t.strings = head.sh_link;
        if (!each_symbol(&t, each, ctx))
            break;
    }
    return 0;
}

/* ---- functions by their name ---- */

struct search {
    const char *name;

    struct trg_elf_function *to;

    size_t n, room;

    bool overflow;
};

bool trg_elf_offset(Elf *elf, uint64_t address, bool code, uint64_t *offset)
{
    size_t n = 0;

    elf_getphdrnum(elf, &n);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr p;

        if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !!(p.p_flags & PF_X) != code ||
            address < p.p_vaddr || address - p.p_vaddr >= p.p_filesz)
            continue;
        *offset = address - p.p_vaddr + p.p_offset;
        return true;
    }
    return false;
}

/* "name@@VERSION" and "name@VERSION" are `name`. */
static bool is_name(const char *symbol, const char *name)
{
    size_t len = strlen(name);

    return !strncmp(symbol, name, len) && (!symbol[len] || symbol[len] == '@');
}

/* What Go's linker puts around the code of Go; C that is linked to it lies outside. */
static bool is_go_code(const struct table *t, uint64_t address)
{
    uint64_t from = 0, to = 0;

    for (size_t i = 0; i < t->n && i <= INT_MAX; i++) {
        const char *name;
        GElf_Sym sym;

        if (!gelf_getsym(t->data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF)
            continue;
        name = elf_strptr(t->elf, t->strings, sym.st_name);
        if (name && !strcmp(name, "runtime.text"))
            from = sym.st_value;
        else if (name && !strcmp(name, "runtime.etext"))
            to = sym.st_value;
    }
    return address >= from && address < to;
}

static bool take_function(void *ctx, const struct table *t, const GElf_Sym *symbol, const char *name)
{
    struct search *s = ctx;
    uint64_t offset;

    if (!is_name(name, s->name) || !trg_elf_offset(t->elf, symbol->st_value, true, &offset))
        return true;
    for (size_t i = 0; i < s->n; i++)
        if (s->to[i].offset == offset)
            return true;
    s->overflow = s->n == s->room;
    if (!s->overflow)
        s->to[s->n++] = (struct trg_elf_function){offset, is_go_code(t, symbol->st_value)};
    return !s->overflow;
}

ssize_t trg_elf_functions(int fd, const void *question, size_t size, void *answer, size_t room)
{
    struct search s = {.name = question, .to = answer, .room = room / sizeof(*s.to)};
    Elf *elf = is_text(question, size) ? open_elf(fd) : NULL;
    int rc;

    if (!elf)
        return no_elf();
    rc = each_function(elf, take_function, &s);
    elf_end(elf);
    if (rc || s.overflow) {
        errno = rc ? ENOMEM : E2BIG;
        return -1;
    }
    return (ssize_t)(s.n * sizeof(*s.to));
}

/* ---- the nearest name ---- */

struct names {
    ST_VEC(const char *) list;

    bool no_memory;
};

static bool take_name(void *ctx, const struct table *t, const GElf_Sym *symbol, const char *name)
{
    struct names *names = ctx;

    (void)t;
    (void)symbol;
    names->no_memory |= st_vec_push(&names->list, name) != 0;
    return names->list.n < NAMES_MOST && !names->no_memory;
}

static ssize_t put_text(void *answer, size_t room, const char *text)
{
    size_t n = text && room ? strnlen(text, room < TRG_ELF_NAME ? room - 1 : TRG_ELF_NAME - 1) : 0;

    if (!n)
        return 0;
    memcpy(answer, text, n);
    ((char *)answer)[n] = '\0';
    return (ssize_t)(n + 1);
}

ssize_t trg_elf_nearest(int fd, const void *question, size_t size, void *answer, size_t room)
{
    Elf *elf = is_text(question, size) ? open_elf(fd) : NULL;
    struct names names = {0};
    ssize_t n;

    if (!elf)
        return no_elf();
    each_function(elf, take_name, &names);
    n = put_text(answer, room, st_nearest(question, size - 1, names.list.at, names.list.n));
    st_vec_free(&names.list);
    elf_end(elf);
    return n;
}

/* ---- libraries ---- */

static size_t put_needed(Elf *elf, Elf_Data *data, size_t strings, char *answer, size_t room)
{
    size_t used = 0;
    GElf_Dyn dyn;

    for (int i = 0; gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
        const char *name = dyn.d_tag == DT_NEEDED ? elf_strptr(elf, strings, dyn.d_un.d_val) : NULL;
        size_t n = name ? strlen(name) + 1 : 0;

        if (n > 1 && n <= TRG_ELF_NAME && n <= room - used) {
            memcpy(answer + used, name, n);
            used += n;
        }
    }
    return used;
}

ssize_t trg_elf_needed(int fd, const void *question, size_t size, void *answer, size_t room)
{
    Elf *elf = open_elf(fd);
    Elf_Scn *section = NULL;
    size_t used = 0;
    GElf_Shdr head;

    (void)question;
    (void)size;
    if (!elf)
        return no_elf();
    while ((section = elf_nextscn(elf, section))) {
        Elf_Data *data =
            gelf_getshdr(section, &head) && head.sh_type == SHT_DYNAMIC ? elf_getdata(section, NULL) : NULL;

        if (data)
            used += put_needed(elf, data, head.sh_link, (char *)answer + used, room - used);
    }
    elf_end(elf);
    return (ssize_t)used;
}

/* ---- the name of a place ---- */

struct place {
    uint64_t address;

    char name[TRG_ELF_NAME];
};

/* The address in the file that is loaded from `offset` on; 0: none. */
static uint64_t address_of(Elf *elf, uint64_t offset)
{
    GElf_Phdr p;
    size_t n = 0;

    elf_getphdrnum(elf, &n);
    for (size_t i = 0; i < n; i++)
        if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && offset >= p.p_offset &&
            offset - p.p_offset < p.p_filesz)
            return offset - p.p_offset + p.p_vaddr;
    return 0;
}

static bool take_place(void *ctx, const struct table *t, const GElf_Sym *symbol, const char *name)
{
    struct place *p = ctx;

    (void)t;
    if (p->address < symbol->st_value || p->address - symbol->st_value >= symbol->st_size)
        return true;
    snprintf(p->name, sizeof(p->name), "%.*s+0x%llx", (int)strcspn(name, "@"), name,
             (unsigned long long)(p->address - symbol->st_value));
    return false;
}

ssize_t trg_elf_name(int fd, const void *question, size_t size, void *answer, size_t room)
{
    Elf *elf = size == sizeof(uint64_t) ? open_elf(fd) : NULL;
    struct place p = {0};
    uint64_t offset;

    if (!elf)
        return no_elf();
    memcpy(&offset, question, sizeof(offset));
    p.address = address_of(elf, offset);
    if (p.address)
        each_function(elf, take_place, &p);
    elf_end(elf);
    return put_text(answer, room, p.name);
}
