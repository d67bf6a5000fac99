/* Where threads wait for work, as text. */
#include "base/infile.h"
#include "base/safetext.h"
#include "base/units.h"
#include "triggers/golang.h"
#include "triggers/mappings.h"
#include "triggers/waits.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SAFE = 4 * 256 + 1,
    MOST_PLACES = 10,  /* of a process */
    MOST_LEFT_OUT = 5, /* of a trigger */
};

/* ---- executable mappings ---- */

static bool holds(void *address, const struct trg_mapping *m)
{
    const uint64_t at = *(const uint64_t *)address;

    return m->code && at >= m->start && at < m->end;
}

/* Without a file, and not the kernel's own ([vdso], [uprobes]). */
static bool is_made(const struct trg_mapping *m)
{
    return m->code && (!strncmp(m->name, "[anon", 5) || !strncmp(m->name, "/memfd:", 7) ||
                       (!m->inode && m->name[0] != '['));
}

enum { REGEX_CHUNK = 64 * 1024 };

/* What code a process has made as it ran. */
struct made {
    bool any, only_chunks; /* all of it in whole chunks, as PCRE compiles regular expressions into */

    bool regex, lua; /* PCRE is there; LuaJIT, whose code is in such chunks too */
};

static bool look_for_made(void *ctx, const struct trg_mapping *m)
{
    struct made *made = ctx;

    made->regex = made->regex || strstr(m->name, "/libpcre");
    made->lua = made->lua || strstr(m->name, "/libluajit");
    if (!is_made(m))
        return false;
    made->any = true;
    made->only_chunks = made->only_chunks && (m->end - m->start) % REGEX_CHUNK == 0;
    return false;
}

/* Code of regular expressions calls nothing that waits. */
static bool compiles_as_it_runs(pid_t pid)
{
    struct made made = {.only_chunks = true};
    struct trg_mapping m;

    trg_find_mapping(pid, look_for_made, &made, &m);
    return made.any && !(made.only_chunks && made.regex && !made.lua);
}

bool trg_has_steady_stacks(const struct st_target *target)
{
    if (!target || !target->npids || target->kind == ST_TARGET_ALL || target->kind == ST_TARGET_CGROUP ||
        target->kind == ST_TARGET_COMMAND)
        return false;
    for (size_t i = 0; i < target->npids; i++)
        if (compiles_as_it_runs(target->pids[i]))
            return false;
    return !trg_is_golang(target); /* each of its waits is made by one function, at any depth */
}

/* ---- names ---- */

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

static bool search_table(Elf *elf, Elf_Scn *section, uint64_t address, char *name, size_t size)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Shdr head;
    GElf_Sym sym;

    if (!data || !gelf_getshdr(section, &head) || !head.sh_entsize)
        return false;
    for (size_t i = 0; i < data->d_size / head.sh_entsize; i++) {
        const char *is;

        if (!gelf_getsym(data, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
            address < sym.st_value || address - sym.st_value >= sym.st_size ||
            !(is = elf_strptr(elf, head.sh_link, sym.st_name)) || !*is)
            continue;
        snprintf(name, size, "%.*s+0x%llx", (int)strcspn(is, "@"), is,
                 (unsigned long long)(address - sym.st_value));
        return true;
    }
    return false;
}

/* The function, and how far into it. "": not known. The file is read, not mapped: it may shrink meanwhile. */
static void find_function(int fd, uint64_t offset, char *name, size_t size)
{
    Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    uint64_t address = elf ? address_of(elf, offset) : 0;
    Elf_Scn *section = NULL;
    GElf_Shdr head;
    bool found = false;

    *name = '\0';
    while (address && !found && (section = elf_nextscn(elf, section)))
        if (gelf_getshdr(section, &head) && (head.sh_type == SHT_SYMTAB || head.sh_type == SHT_DYNSYM))
            found = search_table(elf, section, address, name, size);
    elf_end(elf);
}

void trg_name_place(uint32_t pid, uint64_t ip, char *text, size_t size)
{
    char path[128], function[256] = "", raw[1024];
    const char *base;
    struct trg_mapping m;
    int fd = -1;

    snprintf(text, size, "0x%llx", (unsigned long long)ip);
    if (!trg_find_mapping((pid_t)pid, holds, &ip, &m) || m.name[0] != '/')
        return;
    snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)m.start,
             (unsigned long long)m.end);
    fd = st_infile_open(path, ST_INFILE_FILE);
    if (fd >= 0)
        find_function(fd, ip - m.start + m.offset, function, sizeof(function));
    if (fd >= 0)
        close(fd);
    if (!*function)
        snprintf(function, sizeof(function), "+0x%llx", (unsigned long long)(ip - m.start + m.offset));
    base = strrchr(m.name, '/') + 1;
    snprintf(raw, sizeof(raw), "%s (%s)", function, base);
    st_safe_text(text, size, raw);
}

/* ---- text ---- */

struct places {
    FILE *to;

    const char *trigger;

    uint32_t pid;

    size_t n; /* of the present process, or trigger */
};

static void print_head(const struct trg_waited *w, FILE *to)
{
    char safe[SAFE];

    st_safe_text(safe, sizeof(safe), w->trigger);
    fprintf(to, "%s: where process %u waits for work\n", safe, w->pid);
    fprintf(to, "  %10s %7s %9s %9s  %-15s %s\n", "waits", "share", "unusual", "longest", "system call",
            "at");
}

static int print_place(void *ctx, const struct trg_waited *w, struct st_error *err)
{
    char place[SAFE], count[32], unusual[32], longest[24], depth[32] = "";
    struct places *p = ctx;

    (void)err;
    if (!w->shown)
        return 0;
    if (p->trigger != w->trigger || p->pid != w->pid) {
        *p = (struct places){.to = p->to, .trigger = w->trigger, .pid = w->pid};
        print_head(w, p->to);
    }
    if (++p->n > MOST_PLACES)
        return 0;
    trg_name_place(w->pid, w->ip, place, sizeof(place));
    if (w->depth)
        snprintf(depth, sizeof(depth), ", stack ..%03x", w->depth);
    fprintf(p->to, "  %10s %5.1f %% %9s %9s  %-15s %s%s\n", st_format_count(w->count, count, sizeof(count)),
            w->all ? (double)w->count / (double)w->all * 100 : 0.0,
            st_format_count(w->unusual, unusual, sizeof(unusual)),
            st_format_duration((int64_t)w->longest_ns, longest, sizeof(longest)), w->syscall, place, depth);
    return 0;
}

int trg_print_places(struct trg_set *set, FILE *to, struct st_error *err)
{
    struct places p = {.to = to};

    return trg_each_waited(set, print_place, &p, err);
}

/* What would have counted it. */
static const char *counted_by(const struct trg_waited *w)
{
    if (w->always_idle)
        return w->learned ? ", where it usually waits"
                          : "; idle=learned counts it unless it usually waits there";
    return w->learned ? ", where it usually waits; idle=yes counts it" : "; idle=yes counts it";
}

static int print_left_out(void *ctx, const struct trg_waited *w, struct st_error *err)
{
    char place[SAFE], trigger[SAFE], comm[SAFE], longest[24];
    struct places *p = ctx;

    (void)err;
    if (w->longest_ns < w->threshold_ns || w->count == w->unusual)
        return 0;
    if (p->trigger != w->trigger)
        *p = (struct places){.to = p->to, .trigger = w->trigger};
    if (++p->n > MOST_LEFT_OUT)
        return 0;
    trg_name_place(w->pid, w->ip, place, sizeof(place));
    st_safe_text(trigger, sizeof(trigger), w->trigger);
    st_safe_text(comm, sizeof(comm), w->comm);
    fprintf(p->to, "  %s: %s %s, idle: thread %u \"%s\" at %s%s\n", trigger, w->syscall,
            st_format_duration((int64_t)w->longest_ns, longest, sizeof(longest)), w->tid, comm, place,
            counted_by(w));
    return 0;
}

int trg_print_left_out(struct trg_set *set, FILE *to, struct st_error *err)
{
    struct places p = {.to = to};

    return trg_each_waited(set, print_left_out, &p, err);
}
