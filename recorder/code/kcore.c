/* Copies the kernel's code. /proc/kcore is an ELF core file of the whole memory (Linux, fs/proc/kcore.c);
 * what of it holds code stands in /proc/kallsyms and /proc/modules. perf reads the copy as it reads one of
 * `perf record --kcore` (tools/perf/util/symbol-elf.c, kcore_copy). */
#include "recorder/code/kcore.h"
#include "base/folder.h"
#include "base/vec.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The modules' part of the address space (Linux, Documentation/arch/x86/x86_64/mm.rst), with and without
 * KASLR. */
#define MODULES_START 0xffffffffa0000000ull
#define MODULES_END   0xffffffffff000000ull

enum {
    PAGE = 4096,
    NEAR = 16 * PAGE,      /* ranges so close become one */
    MOST_CODE = 16 * PAGE, /* of one symbol's */
    PIECE = 1 << 20,       /* bytes copied at once */
    MOST_SEGMENTS = 60000
};

struct range {
    uint64_t start, end;
};

typedef ST_VEC(struct range) range_list;

struct copier {
    int from, to;

    ST_VEC(Elf64_Phdr) source; /* of /proc/kcore */

    range_list ranges;

    char *buffer; /* PIECE bytes */

    const struct rec_code_change *changes;

    size_t nchanges;
};

int rec_kernel_text(struct rec_kernel_text *text, struct st_error *err)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    char line[512], name[256];
    uint64_t address;

    *text = (struct rec_kernel_text){0};
    while (f && !(text->text && text->stext && text->etext) && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%" SCNx64 " %*c %255s", &address, name) != 2 || !address)
            continue;
        if (!strcmp(name, "_text"))
            text->text = address;
        else if (!strcmp(name, "_stext"))
            text->stext = address;
        else if (!strcmp(name, "_etext"))
            text->etext = address;
    }
    if (f)
        fclose(f);
    if (text->stext && text->etext > text->stext) {
        text->text = text->text ? text->text : text->stext;
        return 0;
    }
    st_fail(err, ST_ECANNOT, "/proc/kallsyms hides the kernel's addresses from this user");
    return st_hint(err, "run as root, or with CAP_SYSLOG and kernel.kptr_restrict=1");
}

static int open_kcore(struct st_error *err)
{
    int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC), why;

    if (fd >= 0)
        return fd;
    why = errno;
    st_fail_errno(err, ST_ECANNOT, "cannot read the kernel's code from /proc/kcore");
    if (why == ENOENT)
        return st_hint(err, "this kernel was built without CONFIG_PROC_KCORE");
    if (why == EACCES)
        return st_hint(err, "the file is root's: run as root, or with CAP_DAC_READ_SEARCH and CAP_SYS_RAWIO");
    return st_hint(err, "run as root, or with CAP_SYS_RAWIO; a locked-down kernel forbids it to all");
}

int rec_kcore_probe(struct st_error *err)
{
    struct rec_kernel_text text;
    int fd = open_kcore(err);

    if (fd < 0)
        return fd;
    close(fd);
    return rec_kernel_text(&text, err);
}

/* ------------------------------------------------------------------ */
/* What holds code                                                     */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int add_range(range_list *list, uint64_t start, uint64_t end)
{
    struct range r = {start & ~(uint64_t)(PAGE - 1), (end + PAGE - 1) & ~(uint64_t)(PAGE - 1)};

    return r.end > r.start ? st_vec_push(list, r) : 0;
}

/* Code that is no module: BPF programs, trampolines, probes. The kernel lists its symbols, in no order and
 * without sizes; each is taken to reach to the next one, or MOST_CODE. */
static int add_generated(range_list *list)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    ST_VEC(uint64_t) starts = {0};
    char line[1024], type;
    uint64_t address;
    int rc = 0;

    while (f && !rc && fgets(line, sizeof(line), f))
        if (sscanf(line, "%" SCNx64 " %c", &address, &type) == 2 && strchr("tT", type) &&
            address >= MODULES_START && address < MODULES_END)
            rc = st_vec_push(&starts, address);
    if (f)
        fclose(f);
    if (starts.n)
        qsort(starts.at, starts.n, sizeof(*starts.at), by_value);
    for (size_t i = 0; !rc && i < starts.n; i++) {
        uint64_t end = starts.at[i] + MOST_CODE;

        if (i + 1 < starts.n && starts.at[i + 1] < end)
            end = starts.at[i + 1];
        rc = add_range(list, starts.at[i], end);
    }
    st_vec_free(&starts);
    return rc;
}

/* Lines "NAME SIZE USES DEPENDENTS STATE 0xADDRESS". */
static int add_modules(range_list *list)
{
    FILE *f = fopen("/proc/modules", "re");
    uint64_t start, size;
    char line[1024];
    int rc = 0;

    while (f && !rc && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s %" SCNu64 " %*s %*s %*s 0x%" SCNx64, &size, &start) == 2 && start)
            rc = add_range(list, start, start + size);
    if (f)
        fclose(f);
    return rc;
}

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static void merge(range_list *list)
{
    size_t kept = 0;

    qsort(list->at, list->n, sizeof(*list->at), by_start);
    for (size_t i = 1; i < list->n; i++) {
        struct range *last = &list->at[kept];

        if (list->at[i].start > last->end + NEAR)
            list->at[++kept] = list->at[i];
        else if (list->at[i].end > last->end)
            last->end = list->at[i].end;
    }
    list->n = kept + 1;
}

static int find_code(struct copier *c, struct st_error *err)
{
    struct rec_kernel_text text;
    int rc = rec_kernel_text(&text, err);

    if (rc)
        return rc;
    if (add_range(&c->ranges, text.text, text.etext) || add_modules(&c->ranges) || add_generated(&c->ranges))
        return st_nomem(err, "the list of kernel code");
    merge(&c->ranges);
    return 0;
}

/* ------------------------------------------------------------------ */
/* Copying                                                             */

static int read_segments(struct copier *c, struct st_error *err)
{
    Elf64_Ehdr eh;
    Elf64_Phdr ph;

    if (pread(c->from, &eh, sizeof(eh), 0) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
        eh.e_phentsize != sizeof(ph))
        return st_fail(err, ST_EFAIL, "/proc/kcore is no ELF file");
    for (unsigned i = 0; i < eh.e_phnum; i++) {
        if (pread(c->from, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) != sizeof(ph))
            return st_fail(err, ST_EFAIL, "/proc/kcore ends within its segments");
        if (ph.p_type == PT_LOAD && st_vec_push(&c->source, ph))
            return st_nomem(err, "the segments of /proc/kcore");
    }
    return 0;
}

/* The segment of /proc/kcore that holds the address, or NULL. */
static const Elf64_Phdr *segment_of(const struct copier *c, uint64_t address)
{
    for (size_t i = 0; i < c->source.n; i++)
        if (address - c->source.at[i].p_vaddr < c->source.at[i].p_memsz)
            return &c->source.at[i];
    return NULL;
}

static int write_all(int fd, const void *data, size_t n, uint64_t at, struct st_error *err)
{
    const char *from = data;

    while (n) {
        ssize_t done = pwrite(fd, from, n, (off_t)at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return st_fail_errno(err, ST_EFAIL, "cannot write the copy of the kernel's code");
        from += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return 0;
}

/* What cannot be read (it was freed meanwhile) stays a hole. */
static int copy_range(struct copier *c, const struct range *r, uint64_t at, struct st_error *err)
{
    int rc = 0;

    for (uint64_t a = r->start; !rc && a < r->end;) {
        const Elf64_Phdr *seg = segment_of(c, a);
        uint64_t end = seg && seg->p_vaddr + seg->p_memsz < r->end ? seg->p_vaddr + seg->p_memsz : r->end;
        size_t n = end - a < PIECE ? (size_t)(end - a) : PIECE;
        ssize_t got = seg ? pread(c->from, c->buffer, n, (off_t)(a - seg->p_vaddr + seg->p_offset)) : 0;

        if (got > 0)
            rc = write_all(c->to, c->buffer, (size_t)got, at + (a - r->start), err);
        a += got > 0 ? (uint64_t)got : PAGE;
    }
    return rc;
}

static uint64_t round_up(uint64_t n)
{
    return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static int write_headers(struct copier *c, uint64_t first, struct st_error *err)
{
    Elf64_Ehdr eh = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_CORE,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof(eh),
        .e_ehsize = sizeof(eh),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = (Elf64_Half)c->ranges.n,
    };
    int rc = write_all(c->to, &eh, sizeof(eh), 0, err);
    uint64_t at = first;

    for (size_t i = 0; !rc && i < c->ranges.n; i++) {
        const struct range *r = &c->ranges.at[i];
        Elf64_Phdr ph = {
            .p_type = PT_LOAD,
            .p_flags = PF_R | PF_W | PF_X, /* as in /proc/kcore; perf takes what is executable */
            .p_offset = at,
            .p_vaddr = r->start,
            .p_paddr = (Elf64_Addr)-1,
            .p_filesz = r->end - r->start,
            .p_memsz = r->end - r->start,
            .p_align = PAGE,
        };

        rc = write_all(c->to, &ph, sizeof(ph), sizeof(eh) + i * sizeof(ph), err);
        at += ph.p_filesz;
    }
    if (!rc && ftruncate(c->to, (off_t)at))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write the copy of the kernel's code");
    return rc;
}

/* `first` is the place of the first range in the copy. */
static int take_back(struct copier *c, const struct rec_code_change *change, uint64_t first,
                     struct st_error *err)
{
    uint64_t at = first;

    for (size_t i = 0; i < c->ranges.n; i++) {
        const struct range *r = &c->ranges.at[i];
        uint64_t skip = change->address - r->start;

        if (change->address >= r->start && change->address < r->end)
            return write_all(c->to, change->old,
                             change->n < r->end - change->address ? change->n
                                                                  : (size_t)(r->end - change->address),
                             at + skip, err);
        at += r->end - r->start;
    }
    return 0;
}

static int copy_code(struct copier *c, struct st_error *err)
{
    uint64_t at, first;
    int rc = read_segments(c, err);

    if (!rc)
        rc = find_code(c, err);
    if (rc)
        return rc;
    if (c->ranges.n > MOST_SEGMENTS)
        return st_fail(err, ST_EFAIL, "the kernel's code lies in %zu pieces: too many", c->ranges.n);
    at = first = round_up(sizeof(Elf64_Ehdr) + c->ranges.n * sizeof(Elf64_Phdr));
    rc = write_headers(c, at, err);
    for (size_t i = 0; !rc && i < c->ranges.n; i++) {
        rc = copy_range(c, &c->ranges.at[i], at, err);
        at += c->ranges.at[i].end - c->ranges.at[i].start;
    }
    for (size_t i = c->nchanges; !rc && i > 0; i--)
        rc = take_back(c, &c->changes[i - 1], first, err);
    return rc;
}

static int create(int dir, const char *name, struct st_error *err)
{
    int fd = st_folder_create(dir, name);

    return fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot create '%s' for the kernel's code", name) : fd;
}

static int write_kcore(int dir, const struct rec_code_change *changes, size_t nchanges, struct st_error *err)
{
    struct copier c = {
        .from = open_kcore(err), .to = -1, .buffer = malloc(PIECE), .changes = changes, .nchanges = nchanges};
    int rc = c.from < 0 ? c.from : c.buffer ? 0 : st_nomem(err, "a copy of the kernel's code");

    if (!rc)
        c.to = create(dir, "kcore", err);
    if (!rc)
        rc = c.to < 0 ? c.to : copy_code(&c, err);
    if (c.from >= 0)
        close(c.from);
    if (c.to >= 0)
        close(c.to);
    st_vec_free(&c.source);
    st_vec_free(&c.ranges);
    free(c.buffer);
    return rc;
}

static int copy_text(const char *from, int to, char *buffer, struct st_error *err)
{
    int fd = open(from, O_RDONLY | O_CLOEXEC), rc = 0;
    uint64_t at = 0;
    ssize_t n = 0;

    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot read '%s'", from);
    while (!rc && (n = read(fd, buffer, PIECE)) > 0) {
        rc = write_all(to, buffer, (size_t)n, at, err);
        at += (uint64_t)n;
    }
    if (!rc && n < 0)
        rc = st_fail_errno(err, ST_EFAIL, "cannot read '%s'", from);
    close(fd);
    return rc;
}

static int write_text(int dir, const char *name, const char *from, struct st_error *err)
{
    int to = create(dir, name, err), rc;
    char *buffer;

    if (to < 0)
        return to;
    buffer = malloc(PIECE);
    rc = buffer ? copy_text(from, to, buffer, err) : st_nomem(err, "a copy of the kernel's names");
    free(buffer);
    close(to);
    return rc;
}

int rec_kcore_write(int dir, const struct rec_code_change *changes, size_t nchanges, struct st_error *err)
{
    int rc = write_kcore(dir, changes, nchanges, err);

    if (!rc)
        rc = write_text(dir, "kallsyms", "/proc/kallsyms", err);
    return rc ? rc : write_text(dir, "modules", "/proc/modules", err);
}
