/* Functions of the target's files, from their ELF symbol tables, which a child without privilege reads, and
 * of the kernel, from /proc/kallsyms. */
#include "triggers/functions.h"
#include "base/nearest.h"
#include "triggers/elf_read.h"
#include "triggers/privilege.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MOST 400000 /* that are kept for "did you mean" */

enum {
    MOST_PLACES = 4096,  /* of a name in one file */
    MOST_NEEDED = 65536, /* bytes of the names of libraries */
};

struct file {
    char path[PATH_MAX];

    dev_t device;

    ino_t inode;
};

struct names {
    ST_VEC(char *) list;
};

struct search {
    const char *module; /* NULL: any */

    size_t module_len;

    struct trg_function *f;

    const struct trg_config *config;

    struct st_error *err;

    ST_VEC(struct file) files;

    struct names near, kernel; /* that were met and may be meant: in the files, and there */

    bool no_memory;

    struct st_confined child; /* that reads the files */

    bool harmed; /* one of them was not read to its end */

    struct st_error unread; /* why the first file that could not be read was not; code 0: all were */
};

/* What is not found may be in there. */
static void keep_unread(struct search *s, const struct st_error *why)
{
    if (!s->unread.code)
        s->unread = *why;
}

/* The same of a file of /proc, by errno. */
static void keep_unread_proc(struct search *s, const char *path)
{
    struct st_error why = {0};

    st_fail_errno(&why, ST_EFAIL, "cannot look for '%s' in '%s'", s->f ? s->f->name : s->module, path);
    keep_unread(s, &why);
}

/* ---- symbols of a file ---- */

static void add_place(struct search *s, const char *path, uint64_t offset, bool go)
{
    struct trg_place place = {.offset = offset, .go = go};

    for (size_t i = 0; i < s->f->places.n; i++)
        if (s->f->places.at[i].offset == offset && !strcmp(s->f->places.at[i].path, path))
            return;
    snprintf(place.path, sizeof(place.path), "%s", path);
    s->no_memory |= st_vec_push(&s->f->places, place) != 0;
}

static void keep_name(struct names *names, const char *name)
{
    char *copy = names->list.n < NAMES_MOST ? strdup(name) : NULL;

    if (copy && st_vec_push(&names->list, copy))
        free(copy);
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->list.n; i++)
        free(names->list.at[i]);
    st_vec_free(&names->list);
}

static const char *nearest(const char *name, const struct names *names)
{
    return st_nearest(name, strlen(name), (const char *const *)names->list.at, names->list.n);
}

/* Asks the child about a file; as trg_elf_ask. Why there is no answer is kept. */
static ssize_t ask(struct search *s, const char *path, st_confined_fn *fn, void *answer, size_t room,
                   uint64_t *length)
{
    const char *name = s->f ? s->f->name : s->module;
    struct st_error why = {0};
    char what[TRG_FUNCTION + PATH_MAX + 32];
    int failed = s->child.failed;
    ssize_t n;

    s->child.patience = TRG_ELF_PATIENCE;
    snprintf(what, sizeof(what), "look for '%s' in", name);
    n = trg_elf_ask(&s->child, path, what, fn, name, strlen(name) + 1, answer, room, length, &why);
    if (n < 0 &&
        (fn != trg_elf_needed || s->child.failed != failed)) /* a command that is no file: launch says it */
        keep_unread(s, &why);
    s->harmed |= n < 0 && (n != ST_EFAIL || s->child.failed != failed);
    return n;
}

/* The child may have been taken over by what it read. */
static void search_file(struct search *s, const char *path)
{
    struct trg_elf_function *found = malloc(MOST_PLACES * sizeof(*found));
    uint64_t length = 0;
    ssize_t n = found ? ask(s, path, trg_elf_functions, found, MOST_PLACES * sizeof(*found), &length) : 0;

    s->no_memory |= !found;
    for (ssize_t i = 0; i < n / (ssize_t)sizeof(*found); i++)
        if (found[i].offset < length)
            add_place(s, path, found[i].offset, found[i].go != 0);
    free(found);
}

/* For "did you mean". */
static void search_near(struct search *s, const char *path)
{
    char near[TRG_ELF_NAME];
    ssize_t n = ask(s, path, trg_elf_nearest, near, sizeof(near), NULL);

    if (n > 0 && !near[n - 1])
        keep_name(&s->near, near);
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
        keep_unread_proc(s, path);
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
    char *names = malloc(MOST_NEEDED);
    ssize_t n = names ? ask(s, path, trg_elf_needed, names, MOST_NEEDED, NULL) : 0;

    s->no_memory |= !names;
    for (ssize_t at = 0; at < n && !names[n - 1]; at += (ssize_t)strlen(names + at) + 1)
        if (!strchr(names + at, '/') && is_module(s, names + at))
            add_library(s, names + at, strlen(names + at));
    free(names);
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
        keep_unread_proc(s, "/proc/kallsyms");
    while (f && !found && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%*s %c %255s", &type, symbol) != 2 || !strchr("tTwW", type))
            continue;
        found = !strcmp(symbol, name);
        if (!found)
            keep_name(&s->kernel, symbol);
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

static int not_read(const struct search *s)
{
    if (s->err)
        *s->err = s->unread;
    return st_prefix(s->err, "--on: ");
}

static int not_found(struct search *s)
{
    const char *name = s->f->name, *near;

    if (s->unread.code)
        return not_read(s);
    for (size_t i = 0; i < s->files.n; i++)
        search_near(s, s->files.at[i].path);
    if ((near = nearest(name, &s->kernel)))
        keep_name(&s->near, near);
    near = nearest(name, &s->near);
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
    else if (!s->module && !s->config->target->npids)
        st_hint(s->err, "no process of the target is there yet: name the file, /PATH!%s", name);
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
    if (!s->f->places.n && !s->f->kernel)
        return not_found(s);
    if (s->harmed)
        st_confined_say(&s->child, &s->unread);
    return 0;
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
    free_names(&s.near);
    free_names(&s.kernel);
    st_vec_free(&s.files);
    st_confined_close(&s.child);
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
    else if (!s.files.n && s.unread.code)
        rc = not_read(&s);
    else if (!s.files.n)
        rc = st_fail(err, ST_EUSAGE, "--on: no file '%s' is mapped by the target", module);
    else
        snprintf(path, PATH_MAX, "%s", s.files.at[0].path);
    st_vec_free(&s.files);
    st_confined_close(&s.child);
    return rc;
}

void trg_function_free(struct trg_function *f)
{
    st_vec_free(&f->places);
}

/* ---- hooks of kernel functions ---- */

/* A program that asks for an argument (from Linux 5.17, later than fentry itself), loaded and attached. */
static bool try_fentry(const char *name)
{
    static const struct bpf_insn ask[] = {
        {.code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -8},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2},
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_3, .src_reg = BPF_REG_10},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_3, .imm = -8},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_func_arg},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
    int id = libbpf_find_vmlinux_btf_id(name, BPF_TRACE_FENTRY), prog, link;

    if (id <= 0)
        return false;
    opts.attach_btf_id = (unsigned)id;
    prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "st_probe", "GPL", ask, sizeof(ask) / sizeof(ask[0]), &opts);
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
