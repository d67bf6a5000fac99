/* Probes that the author of a program put there, by its notes of the section .note.stapsdt. Run by a child
 * without privilege. libbpf can read them, too, but would do it in the process that asks, by libelf. */
#include "triggers/elf_read.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/user.h>

enum { NOTE_TYPE = 3 };

struct notes {
    Elf *elf;

    const char *provider, *name; /* that are looked for */

    uint64_t base; /* of .stapsdt.base where the file has it now; 0: it has none */

    struct trg_probe_site *to;

    size_t n, room;
};

/* ---- where an argument is ---- */

/* By their names of 8, 4, 2 bytes and one, in the order of struct pt_regs. */
static const struct {
    char names[4][5];

    uint8_t reg;
} registers[] = {
#define REG(field) (offsetof(struct user_regs_struct, field) / 8)
    {{"r15", "r15d", "r15w", "r15b"}, REG(r15)}, {{"r14", "r14d", "r14w", "r14b"}, REG(r14)},
    {{"r13", "r13d", "r13w", "r13b"}, REG(r13)}, {{"r12", "r12d", "r12w", "r12b"}, REG(r12)},
    {{"rbp", "ebp", "bp", "bpl"}, REG(rbp)},     {{"rbx", "ebx", "bx", "bl"}, REG(rbx)},
    {{"r11", "r11d", "r11w", "r11b"}, REG(r11)}, {{"r10", "r10d", "r10w", "r10b"}, REG(r10)},
    {{"r9", "r9d", "r9w", "r9b"}, REG(r9)},      {{"r8", "r8d", "r8w", "r8b"}, REG(r8)},
    {{"rax", "eax", "ax", "al"}, REG(rax)},      {{"rcx", "ecx", "cx", "cl"}, REG(rcx)},
    {{"rdx", "edx", "dx", "dl"}, REG(rdx)},      {{"rsi", "esi", "si", "sil"}, REG(rsi)},
    {{"rdi", "edi", "di", "dil"}, REG(rdi)},     {{"rip", "eip", "ip", ""}, REG(rip)},
    {{"rsp", "esp", "sp", "spl"}, REG(rsp)},
};

static bool find_register(const char *name, uint8_t *reg)
{
    for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
        for (int width = 0; width < 4; width++)
            if (*name && !strcmp(registers[i].names[width], name)) {
                *reg = registers[i].reg;
                return true;
            }
    return false;
}

static bool is_size(int size)
{
    size = size < 0 ? -size : size;
    return size == 1 || size == 2 || size == 4 || size == 8;
}

/* "-4@-20(%rbp)", "8@(%rax)", "4@%eax", "8@$-1". Returns the bytes that it took, 0: it is none of these. */
static int read_argument(const char *text, struct trg_probe_argument *a)
{
    int size = 0, took = 0;
    long long value = 0;
    char reg[8] = "";

    *a = (struct trg_probe_argument){0};
    if (sscanf(text, " %d @ %lld ( %%%7[a-z0-9] ) %n", &size, &value, reg, &took) == 3 && took)
        a->kind = TRG_PROBE_MEMORY;
    else if (sscanf(text, " %d @ ( %%%7[a-z0-9] ) %n", &size, reg, &took) == 2 && took)
        a->kind = TRG_PROBE_MEMORY;
    else if (sscanf(text, " %d @ %%%7[a-z0-9] %n", &size, reg, &took) == 2 && took)
        a->kind = TRG_PROBE_REGISTER;
    else if (sscanf(text, " %d @ $%lld %n", &size, &value, &took) == 2 && took)
        a->kind = TRG_PROBE_CONSTANT;
    else
        return 0;
    a->value = a->kind == TRG_PROBE_REGISTER ? 0 : value;
    a->size = (int8_t)size;
    if (!is_size(size) || (a->kind != TRG_PROBE_CONSTANT && !find_register(reg, &a->reg)))
        return 0;
    return took;
}

/* Returns -1 with ENOTSUP: not all can be read. */
static int read_arguments(const char *text, struct trg_probe_site *site)
{
    for (site->n = 0; *text; site->n++) {
        int took = site->n < TRG_PROBE_ARGUMENTS ? read_argument(text, &site->arguments[site->n]) : 0;

        if (!took) {
            errno = ENOTSUP;
            return -1;
        }
        text += took;
    }
    return 0;
}

/* ---- where a probe is ---- */

/* The three texts of a note, one behind the other. */
struct texts {
    const char *provider, *name, *arguments;
};

static bool split(const char *at, size_t n, struct texts *t)
{
    const char **to[] = {&t->provider, &t->name, &t->arguments};

    for (int i = 0; i < 3; i++) {
        const char *end = memchr(at, 0, n);

        if (!end)
            return false;
        *to[i] = at;
        n -= (size_t)(end + 1 - at);
        at = end + 1;
    }
    return true;
}

/* 0, or -1 with errno. */
static int take_note(struct notes *s, const char *note, size_t size)
{
    struct trg_probe_site site = {0};
    uint64_t words[3]; /* where it is, where .stapsdt.base was, where its semaphore is */
    struct texts t;

    if (size < sizeof(words) || !split(note + sizeof(words), size - sizeof(words), &t) ||
        strcmp(t.provider, s->provider) != 0 || strcmp(t.name, s->name) != 0)
        return 0;
    memcpy(words, note, sizeof(words));
    if (s->base && words[1]) { /* prelink has moved it */
        words[0] += s->base - words[1];
        words[2] += words[2] ? s->base - words[1] : 0;
    }
    if (!trg_elf_offset(s->elf, words[0], true, &site.offset) ||
        (words[2] && (!trg_elf_offset(s->elf, words[2], false, &site.semaphore) || !site.semaphore))) {
        errno = EBADMSG;
        return -1;
    }
    if (read_arguments(t.arguments, &site))
        return -1;
    if (s->n == s->room) {
        errno = E2BIG;
        return -1;
    }
    s->to[s->n++] = site;
    return 0;
}

static int take_notes(struct notes *s, Elf_Scn *section)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t at = 0, next, name, note;
    GElf_Nhdr head;

    while (data && (next = gelf_getnote(data, at, &head, &name, &note))) {
        const char *bytes = data->d_buf;

        if (head.n_type == NOTE_TYPE && head.n_namesz == 8 && !memcmp(bytes + name, "stapsdt", 8) &&
            take_note(s, bytes + note, head.n_descsz))
            return -1;
        at = next;
    }
    return 0;
}

static int search_sections(struct notes *s)
{
    Elf_Scn *section = NULL, *notes = NULL;
    size_t names;
    GElf_Shdr head;

    if (elf_getshdrstrndx(s->elf, &names))
        return 0;
    while ((section = elf_nextscn(s->elf, section))) {
        const char *name = gelf_getshdr(section, &head) ? elf_strptr(s->elf, names, head.sh_name) : NULL;

        if (name && !strcmp(name, ".stapsdt.base"))
            s->base = head.sh_addr;
        if (name && !notes && head.sh_type == SHT_NOTE && !strcmp(name, ".note.stapsdt"))
            notes = section;
    }
    return notes ? take_notes(s, notes) : 0;
}

/* "PROVIDER\0NAME\0" */
static bool take_question(struct notes *s, const char *question, size_t size)
{
    size_t provider = size ? strnlen(question, size) + 1 : 0;

    s->provider = question;
    s->name = question + provider;
    return size > provider && !question[size - 1];
}

ssize_t trg_elf_probes(int fd, const void *question, size_t size, void *answer, size_t room)
{
    struct notes s = {.to = answer, .room = room / sizeof(*s.to)};
    GElf_Ehdr head;
    int rc = 0;

    errno = 0;
    if (!take_question(&s, question, size) || elf_version(EV_CURRENT) == EV_NONE ||
        !(s.elf = elf_begin(fd, ELF_C_READ, NULL))) {
        errno = errno ? errno : EINVAL;
        return -1;
    }
    if (gelf_getclass(s.elf) == ELFCLASS64 && gelf_getehdr(s.elf, &head) && head.e_machine == EM_X86_64)
        rc = search_sections(&s);
    elf_end(s.elf);
    return rc ? -1 : (ssize_t)(s.n * sizeof(*s.to));
}

/* ---- who asked ---- */

static bool is_argument(const struct trg_probe_argument *a)
{
    return a->kind < TRG_PROBE_KINDS && a->reg < TRG_PROBE_REGISTERS && is_size(a->size);
}

bool trg_probe_are_sound(const struct trg_probe_site *sites, size_t n, uint64_t size)
{
    for (size_t i = 0; i < n; i++) {
        if (sites[i].offset >= size || sites[i].semaphore >= size || sites[i].n > TRG_PROBE_ARGUMENTS)
            return false;
        for (size_t j = 0; j < sites[i].n; j++)
            if (!is_argument(&sites[i].arguments[j]))
                return false;
    }
    return true;
}
