/* Where threads wait for work, as text. */
#include "base/safetext.h"
#include "base/units.h"
#include "triggers/elf_read.h"
#include "triggers/golang.h"
#include "triggers/mappings.h"
#include "triggers/waits.h"

#include <stdlib.h>
#include <string.h>

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

/* "": not known. The child may have been taken over by what it read. */
static void find_function(struct st_confined *child, const char *path, uint64_t offset,
                          char function[TRG_ELF_NAME])
{
    ssize_t n = trg_elf_ask(child, path, "name a place in", trg_elf_name, &offset, sizeof(offset), function,
                            TRG_ELF_NAME, NULL, NULL);

    function[n > 0 ? n - 1 : 0] = '\0';
}

void trg_name_place(struct st_confined *child, uint32_t pid, uint64_t ip, char *text, size_t size)
{
    char path[128], function[TRG_ELF_NAME], raw[1024];
    const char *base;
    struct trg_mapping m;

    snprintf(text, size, "0x%llx", (unsigned long long)ip);
    if (!trg_find_mapping((pid_t)pid, holds, &ip, &m) || m.name[0] != '/')
        return;
    snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)m.start,
             (unsigned long long)m.end);
    find_function(child, path, ip - m.start + m.offset, function);
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

    struct st_confined *child;
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
        *p = (struct places){.to = p->to, .trigger = w->trigger, .pid = w->pid, .child = p->child};
        print_head(w, p->to);
    }
    if (++p->n > MOST_PLACES)
        return 0;
    trg_name_place(p->child, w->pid, w->ip, place, sizeof(place));
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
    struct st_confined child = {.patience = TRG_ELF_PATIENCE};
    struct places p = {.to = to, .child = &child};
    int rc = trg_each_waited(set, print_place, &p, err);

    st_confined_close(&child);
    return rc;
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
        *p = (struct places){.to = p->to, .trigger = w->trigger, .child = p->child};
    if (++p->n > MOST_LEFT_OUT)
        return 0;
    trg_name_place(p->child, w->pid, w->ip, place, sizeof(place));
    st_safe_text(trigger, sizeof(trigger), w->trigger);
    st_safe_text(comm, sizeof(comm), w->comm);
    fprintf(p->to, "  %s: %s %s, idle: thread %u \"%s\" at %s%s\n", trigger, w->syscall,
            st_format_duration((int64_t)w->longest_ns, longest, sizeof(longest)), w->tid, comm, place,
            counted_by(w));
    return 0;
}

int trg_print_left_out(struct trg_set *set, FILE *to, struct st_error *err)
{
    struct st_confined child = {.patience = TRG_ELF_PATIENCE};
    struct places p = {.to = to, .child = &child};
    int rc = trg_each_waited(set, print_left_out, &p, err);

    st_confined_close(&child);
    return rc;
}
