/* Functions of the target's files, from their ELF symbol tables, and of the kernel, from /proc/kallsyms. */
#include "triggers/functions.h"
#include "base/infile.h"
#include "base/nearest.h"
#include "triggers/privilege.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MOST 400000 /* that are kept for "did you mean" */

struct file {
    char path[PATH_MAX];

    dev_t device;

    ino_t inode;
};

struct search {
    const char *module; /* NULL: any */

    size_t module_len;

    struct trg_function *f;

    const struct trg_config *config;

    struct st_error *err;

    ST_VEC(struct file) files;

    ST_VEC(char *) names; /* that were met */

    bool no_memory;

    int unread; /* errno of the first file that could not be read; 0: none */

    char unread_file[PATH_MAX];
};

/* What is not found may be in there. */
static void keep_unread(struct search *s, const char *path)
{
    if (s->unread)
        return;
    s->unread = errno;
    snprintf(s->unread_file, sizeof(s->unread_file), "%s", path);
}

/* ---- symbols of a file ---- */

static bool offset_of(Elf *elf, uint64_t address, uint64_t *offset)
{
    size_t n = 0;

    elf_getphdrnum(elf, &n);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr p;

        if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X))
            continue;
        if (address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz) {
            *offset = address - p.p_vaddr + p.p_offset;
            return true;
        }
    }
    return false;
}

static void add_place(struct search *s, const char *path, uint64_t offset, bool go)
{
    struct trg_place place = {.offset = offset, .go = go};

    for (size_t i = 0; i < s->f->places.n; i++)
        if (s->f->places.at[i].offset == offset && !strcmp(s->f->places.at[i].path, path))
            return;
    snprintf(place.path, sizeof(place.path), "%s", path);
    s->no_memory |= st_vec_push(&s->f->places, place) != 0;
}

static void keep_name(struct search *s, const char *name)
{
    char *copy = s->names.n < NAMES_MOST ? strdup(name) : NULL;

    if (copy && st_vec_push(&s->names, copy))
        free(copy);
}

/* "name@@VERSION" and "name@VERSION" are `name`. */
static bool is_name(const char *symbol, const char *name)
{
    size_t len = strlen(name);

    return !strncmp(symbol, name, len) && (!symbol[len] || symbol[len] == '@');
}

/* What Go's linker puts around the code of Go; C that is linked to it lies outside. */
static bool is_go_code(Elf *elf, Elf_Data *data, size_t n, size_t strings, uint64_t address)
{
    uint64_t from = 0, to = 0;

    for (size_t i = 0; i < n; i++) {
        const char *name;
        GElf_Sym sym;

        if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF)
            continue;
        name = elf_strptr(elf, strings, sym.st_name);
        if (name && !strcmp(name, "runtime.text"))
            from = sym.st_value;
        else if (name && !strcmp(name, "runtime.etext"))
            to = sym.st_value;
    }
    return address >= from && address < to;
}

static void search_table(struct search *s, Elf *elf, Elf_Scn *section, const GElf_Shdr *head,
                         const char *path)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n = data && head->sh_entsize ? data->d_size / head->sh_entsize : 0;

    for (size_t i = 0; i < n; i++) {
        const char *name;
        uint64_t offset;
        GElf_Sym sym;

        if (!gelf_getsym(data, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
            sym.st_shndx == SHN_UNDEF || !sym.st_value)
            continue;
        name = elf_strptr(elf, head->sh_link, sym.st_name);
        if (!name || !*name)
            continue;
        if (!is_name(name, s->f->name))
            keep_name(s, name);
        else if (offset_of(elf, sym.st_value, &offset))
            add_place(s, path, offset, is_go_code(elf, data, n, head->sh_link, sym.st_value));
    }
}

/* The file is read, not mapped: of one that becomes shorter meanwhile there would be a SIGBUS. */
static void search_file(struct search *s, const char *path)
{
    int fd = st_infile_open(path, ST_INFILE_FILE);
    Elf *elf = fd >= 0 && elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    Elf_Scn *section = NULL;

    while (elf && (section = elf_nextscn(elf, section))) {
        GElf_Shdr head;

        if (gelf_getshdr(section, &head) && (head.sh_type == SHT_SYMTAB || head.sh_type == SHT_DYNSYM))
            search_table(s, elf, section, &head, path);
    }
    if (fd < 0)
        keep_unread(s, path);
    s->no_memory |= fd >= 0 && !elf;
    elf_end(elf);
    if (fd >= 0)
        close(fd);
}

/* ---- which files ---- */

/* "libc" is libc.so.6 and libc-2.36.so too. */
static bool is_module(const struct search *s, const char *path)
{
    const char *base = strrchr(path, '/');

    if (!s->module)
        return true;
    if (memchr(s->module, '/', s->module_len))
        return strlen(path) == s->module_len && !strncmp(path, s->module, s->module_len);
    base = base ? base + 1 : path;
    return !strncmp(base, s->module, s->module_len) && strchr(".-", base[s->module_len]);
}

static void add_file(struct search *s, const char *path)
{
    struct file file;
    struct stat st;

    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return;
    for (size_t i = 0; i < s->files.n; i++)
        if (s->files.at[i].device == st.st_dev && s->files.at[i].inode == st.st_ino)
            return;
    snprintf(file.path, sizeof(file.path), "%s", path);
    file.device = st.st_dev;
    file.inode = st.st_ino;
    s->no_memory |= st_vec_push(&s->files, file) != 0;
}

/* A mapped file, by the process's own root; where its name leads nowhere from there (it is on a mount that
 * its root does not reach, or has been removed), by the mapping itself. `line` is that of /proc/PID/maps. */
static void add_mapping(struct search *s, pid_t pid, const char *line, const char *name)
{
    char path[PATH_MAX + 64];
    unsigned long start, end;

    snprintf(path, sizeof(path), "/proc/%d/root%s", pid, name);
    if (access(path, F_OK) && sscanf(line, "%lx-%lx", &start, &end) == 2)
        snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, start, end);
    add_file(s, path);
}

/* Files that a process has mapped executable. */
static void add_mapped(struct search *s, pid_t pid)
{
    char path[64], line[PATH_MAX + 128];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    f = fopen(path, "re");
    if (!f)
        keep_unread(s, path);
    while (f && fgets(line, sizeof(line), f)) {
        char *name = strchr(line, '/');
        char flags[8] = "";

        line[strcspn(line, "\n")] = '\0';
        if (!name || sscanf(line, "%*s %7s", flags) != 1 || flags[2] != 'x' || !is_module(s, name))
            continue;
        add_mapping(s, pid, line, name);
    }
    if (f)
        fclose(f);
}

static void add_library(struct search *s, const char *name, size_t len)
{
    static const char *const folders[] = {"/lib/x86_64-linux-gnu",
                                          "/usr/lib/x86_64-linux-gnu",
                                          "/lib64",
                                          "/usr/lib64",
                                          "/usr/local/lib",
                                          "/lib",
                                          "/usr/lib"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%.*s", folders[i], (int)len, name);
        if (!access(path, R_OK)) {
            add_file(s, path);
            return;
        }
    }
}

/* A program that does not run yet: its file and the libraries that it names. */
static void add_needed(struct search *s, const char *path)
{
    int fd = st_infile_open(path, ST_INFILE_FILE);
    Elf *elf = fd >= 0 && elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    Elf_Scn *section = NULL;
    GElf_Shdr head;
    GElf_Dyn dyn;

    while (elf && (section = elf_nextscn(elf, section))) {
        Elf_Data *data;

        if (!gelf_getshdr(section, &head) || head.sh_type != SHT_DYNAMIC)
            continue;
        data = elf_getdata(section, NULL);
        for (int i = 0; data && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
            const char *name = dyn.d_tag == DT_NEEDED ? elf_strptr(elf, head.sh_link, dyn.d_un.d_val) : NULL;

            if (name && is_module(s, name))
                add_library(s, name, strlen(name));
        }
    }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
}

static void add_command(struct search *s, const char *command)
{
    char path[PATH_MAX];
    const char *folders = getenv("PATH");

    snprintf(path, sizeof(path), "%s", command);
    for (const char *at = strchr(command, '/') ? NULL : folders; at && *at; at += strspn(at, ":")) {
        size_t len = strcspn(at, ":");

        snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, command);
        if (!access(path, X_OK))
            break;
        at += len;
    }
    if (is_module(s, path))
        add_file(s, path);
    add_needed(s, path);
}

static void add_files(struct search *s)
{
    const struct st_target *target = s->config->target;
    char path[PATH_MAX];

    if (target->kind == ST_TARGET_COMMAND && target->argv)
        add_command(s, target->argv[0]);
    for (size_t i = 0; i < target->npids; i++)
        add_mapped(s, target->pids[i]);
    if (s->files.n || !s->module)
        return;
    snprintf(path, sizeof(path), "%.*s", (int)s->module_len, s->module);
    if (strchr(path, '/')) {
        add_file(s, path);
        return;
    }
    add_library(s, path, strlen(path));
    if (!s->files.n) { /* a script's interpreter is not known before it runs: "libc" is libc.so.6 */
        snprintf(path, sizeof(path), "%.*s.so.6", (int)s->module_len, s->module);
        add_library(s, path, strlen(path));
    }
}

/* ---- the kernel ---- */

/* "ffffffff810c3a10 T name" */
static bool in_kallsyms(struct search *s, const char *name)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    char line[512], symbol[256], type;
    bool found = false;

    if (!f)
        keep_unread(s, "/proc/kallsyms");
    while (f && !found && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%*s %c %255s", &type, symbol) != 2 || !strchr("tTwW", type))
            continue;
        found = !strcmp(symbol, name);
        if (!found)
            keep_name(s, symbol);
    }
    if (f)
        fclose(f);
    return found;
}

static bool may_be_kernel(const struct search *s)
{
    return !s->module || (s->module_len == 6 && !strncmp(s->module, "kernel", 6)) ||
           (s->module_len == 7 && !strncmp(s->module, "vmlinux", 7));
}

/* ---- the whole ---- */

static int not_read(const struct search *s, const char *wanted)
{
    errno = s->unread;
    return st_fail_errno(s->err, ST_EFAIL, "--on: cannot look for '%s' in '%s'", wanted, s->unread_file);
}

static int not_found(struct search *s)
{
    const char *name = s->f->name;
    const char *near = st_nearest(name, strlen(name), (const char *const *)s->names.at, s->names.n);

    if (s->unread)
        return not_read(s, name);
    if (s->module && !s->files.n && !may_be_kernel(s))
        return st_fail(s->err, ST_EUSAGE, "--on: no file '%.*s' is mapped by the target", (int)s->module_len,
                       s->module);
    if (s->module)
        st_fail(s->err, ST_EUSAGE, "--on: there is no function '%s' in %.*s", name, (int)s->module_len,
                s->module);
    else
        st_fail(
            s->err, ST_EUSAGE,
            "--on: there is no function '%s' in the %zu files that the target has mapped, nor in the kernel",
            name, s->files.n);
    if (near)
        st_hint(s->err, "did you mean '%s'?", near);
    else if (!s->module && s->config->target->kind == ST_TARGET_ALL)
        st_hint(s->err, "with -a, name the file: /PATH!%s", name);
    return ST_EUSAGE;
}

static int find(struct search *s)
{
    add_files(s);
    for (size_t i = 0; i < s->files.n; i++)
        search_file(s, s->files.at[i].path);
    if (s->no_memory)
        return st_nomem(s->err, "the functions of the target");
    if (!s->f->places.n && may_be_kernel(s))
        s->f->kernel = in_kallsyms(s, s->f->name);
    return s->f->places.n || s->f->kernel ? 0 : not_found(s);
}

int trg_find_function(const char *what, const struct trg_config *config, struct trg_function *f,
                      struct st_error *err)
{
    const char *mark = strrchr(what, '!');
    struct search s = {.f = f, .config = config, .err = err};
    int rc;

    memset(f, 0, sizeof(*f));
    if (mark) {
        s.module = what;
        s.module_len = (size_t)(mark - what);
    }
    snprintf(f->name, sizeof(f->name), "%s", mark ? mark + 1 : what);
    rc = find(&s);
    for (size_t i = 0; i < s.names.n; i++)
        free(s.names.at[i]);
    st_vec_free(&s.names);
    st_vec_free(&s.files);
    if (rc)
        trg_function_free(f);
    return rc;
}

int trg_find_file(const char *module, const struct trg_config *config, char path[PATH_MAX],
                  struct st_error *err)
{
    struct search s = {.module = module, .module_len = strlen(module), .config = config, .err = err};
    int rc = 0;

    add_files(&s);
    if (s.no_memory)
        rc = st_nomem(err, "the target's files");
    else if (!s.files.n && s.unread)
        rc = not_read(&s, module);
    else if (!s.files.n)
        rc = st_fail(err, ST_EUSAGE, "--on: no file '%s' is mapped by the target", module);
    else
        snprintf(path, PATH_MAX, "%s", s.files.at[0].path);
    st_vec_free(&s.files);
    return rc;
}

void trg_function_free(struct trg_function *f)
{
    st_vec_free(&f->places);
}

/* ---- hooks of kernel functions ---- */

/* A program of two instructions, loaded and attached. */
static bool try_fentry(const char *name)
{
    static const struct bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
    int id = libbpf_find_vmlinux_btf_id(name, BPF_TRACE_FENTRY), prog, link;

    if (id <= 0)
        return false;
    opts.attach_btf_id = (unsigned)id;
    prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "st_probe", "GPL", nothing, 2, &opts);
    link = prog >= 0 ? bpf_raw_tracepoint_open(NULL, prog) : -1;
    if (link >= 0)
        close(link);
    if (prog >= 0)
        close(prog);
    return link >= 0;
}

int trg_find_kernel_hook(const char *name, enum trg_kernel_hook *hook, struct st_error *err)
{
    *hook = TRG_HOOK_FENTRY;
    trg_hear_libbpf();
    if (try_fentry(name))
        return 0;
    *hook = TRG_HOOK_KPROBE;
    if (!access("/sys/bus/event_source/devices/kprobe/type", R_OK))
        return 0;
    st_fail(err, ST_ECANNOT,
            "'%s' is a function of the kernel, and this kernel has neither fentry nor kprobes to see it",
            name);
    return st_hint(
        err,
        "`stalltrap doctor` tells what it has; system calls and tracepoints work: syscall:, tracepoint:");
}

const char *trg_kernel_hook_name(enum trg_kernel_hook hook)
{
    return hook == TRG_HOOK_FENTRY ? "fentry" : "kprobe";
}

const char *trg_sees_kernel_functions(struct st_error *err)
{
    enum trg_kernel_hook hook;

    return trg_find_kernel_hook("do_nanosleep", &hook, err) ? NULL : trg_kernel_hook_name(hook);
}
