/* tracefs: events/CATEGORY/NAME/format. */
#include "triggers/tracepoints.h"
#include "base/nearest.h"
#include "base/safetext.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *events_folder(void)
{
    static const char *const folders[] = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

    for (size_t i = 0; i < 2; i++)
        if (!access(folders[i], R_OK))
            return folders[i];
    return NULL;
}

int trg_check_tracefs(struct st_error *err)
{
    if (events_folder())
        return 0;
    st_fail(err, ST_ECANNOT, "--on: the fields of a tracepoint need tracefs, which this process cannot read");
    return st_hint(err, "as root: mount -t tracefs tracefs /sys/kernel/tracing");
}

bool trg_set_tracepoint(struct trg_options *o, const char *word)
{
    const char *colon = strchr(word, ':');

    snprintf(o->name, sizeof(o->name), "%s", word);
    return colon && colon != word && colon - word < 64 && colon[1] && !strchr(colon + 1, ':') &&
           strlen(colon + 1) < 128 && !strchr(word, '/') && *word != '.' && colon[1] != '.';
}

/* The entry of the folder that is nearest to the word. */
static void suggest_entry(const char *folder, const char *word, struct st_error *err)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, NULL);
    const char **names = n > 0 ? calloc((size_t)n, sizeof(*names)) : NULL;
    const char *near = NULL;

    for (int i = 0; names && i < n; i++)
        names[i] = entries[i]->d_name;
    if (names)
        near = st_nearest(word, strlen(word), names, (size_t)n);
    if (near)
        st_hint(err, "did you mean '%s'?", near);
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    free(names);
}

struct field {
    char name[64];

    unsigned offset, size, is_signed;

    bool is_text, is_far;
};

/* "	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;" */
static bool parse_field(const char *line, struct field *f)
{
    char declaration[256], *name;
    int n;

    memset(f, 0, sizeof(*f));
    n = sscanf(line, " field:%255[^;]; offset:%u; size:%u; signed:%u;", declaration, &f->offset, &f->size,
               &f->is_signed);
    if (n != 4)
        return false;
    f->is_far = strstr(declaration, "__data_loc") != NULL;
    f->is_text = strstr(declaration, "char") && (f->is_far || strchr(declaration, '['));
    name = strrchr(declaration, ' ');
    if (!name)
        return false;
    snprintf(f->name, sizeof(f->name), "%.*s", (int)strcspn(name + 1, "["), name + 1);
    return true;
}

static FILE *open_format(const struct trg_tracepoint *t)
{
    char path[320];

    snprintf(path, sizeof(path), "%s/%s/%s/format", events_folder(), t->category, t->name);
    return fopen(path, "re");
}

static void show(struct trg_tracepoint *t, const struct field *f)
{
    if (t->shown_n == TRG_SHOWN || f->is_text || f->is_far || !strncmp(f->name, "common_", 7) ||
        strlen(f->name) >= sizeof(t->shown_name[0]) ||
        (f->size != 1 && f->size != 2 && f->size != 4 && f->size != 8))
        return;
    t->shown[t->shown_n] = (struct filter_term){
        .source = FILTER_FIELD, .index = f->offset, .size = f->size, .is_signed = f->is_signed};
    strcpy(t->shown_name[t->shown_n++], f->name);
}

/* 1: the condition has its place now. */
static int place(struct filter_term *t, const char *name, const struct field *f, struct st_error *err)
{
    if (strcmp(name, f->name) != 0)
        return 0;
    if (t->is_text != (f->is_text || f->is_far))
        return st_fail(err, ST_EUSAGE, "--on: if=: '%s' is %s", name,
                       t->is_text ? "a number" : "a text: compare it with \"...\"");
    t->index = f->offset;
    t->size = f->size;
    t->is_signed = f->is_signed;
    t->is_far = f->is_far;
    return 1;
}

static int no_field(const struct trg_tracepoint *t, const char *name, struct st_error *err)
{
    const char *names[64];
    struct field f[64];
    char line[512];
    const char *near;
    size_t n = 0;
    FILE *file = open_format(t);

    while (file && n < 64 && fgets(line, sizeof(line), file))
        if (parse_field(line, &f[n])) {
            names[n] = f[n].name;
            n++;
        }
    if (file)
        fclose(file);
    near = st_nearest(name, strlen(name), names, n);
    st_fail(err, ST_EUSAGE, "--on: if=: the tracepoint %s:%s has no field '%s'", t->category, t->name, name);
    if (near)
        st_hint(err, "did you mean '%s'?", near);
    return ST_EUSAGE;
}

static int find_fields(struct trg_tracepoint *t, const struct trg_options *options, struct filter *filter,
                       struct st_error *err)
{
    uint32_t placed = 0;
    char line[512];
    struct field f;
    int rc = 0;
    FILE *file = open_format(t);

    while (file && rc >= 0 && fgets(line, sizeof(line), file)) {
        if (!parse_field(line, &f))
            continue;
        show(t, &f);
        for (uint32_t i = 0; rc >= 0 && i < filter->n; i++) {
            rc = place(&filter->term[i], options->field[i], &f, err);
            placed |= rc > 0 ? 1u << i : 0;
        }
    }
    if (file)
        fclose(file);
    for (uint32_t i = 0; rc >= 0 && i < filter->n; i++)
        if (!(placed >> i & 1))
            rc = no_field(t, options->field[i], err);
    return rc < 0 ? rc : 0;
}

static int no_tracepoint(const struct trg_tracepoint *t, struct st_error *err)
{
    char folder[256], what[256];

    snprintf(folder, sizeof(folder), "%s/%s", events_folder(), t->category);
    snprintf(what, sizeof(what), "%s:%s", t->category, t->name);
    if (access(folder, R_OK)) {
        st_fail(err, ST_EUSAGE, "--on: there are no tracepoints '%s'", t->category);
        suggest_entry(events_folder(), t->category, err);
    } else {
        st_fail(err, ST_EUSAGE, "--on: there is no tracepoint '%s'", what);
        suggest_entry(folder, t->name, err);
    }
    return ST_EUSAGE;
}

int trg_find_tracepoint(const char *what, const struct trg_options *options, struct trg_tracepoint *t,
                        struct filter *filter, struct st_error *err)
{
    FILE *format;

    memset(t, 0, sizeof(*t));
    snprintf(t->category, sizeof(t->category), "%.*s", (int)strcspn(what, ":"), what);
    snprintf(t->name, sizeof(t->name), "%s", what + strcspn(what, ":") + 1);
    if (!events_folder()) {
        t->raw = true;
        return !filter->n && strcmp(t->category, "syscalls") != 0 ? 0 : trg_check_tracefs(err);
    }
    format = open_format(t);
    if (!format)
        return no_tracepoint(t, err);
    fclose(format);
    return find_fields(t, options, filter, err);
}

int trg_attach_tracepoint(struct trg_state *s, const struct trg_tracepoint *t, struct bpf_program *prog,
                          struct bpf_program *raw, struct st_error *err)
{
    char what[256];

    snprintf(what, sizeof(what), "cannot attach to the tracepoint %s:%s", t->category, t->name);
    if (t->raw)
        return trg_kit_keep(s, bpf_program__attach_raw_tracepoint(raw, t->name), what, err);
    return trg_kit_keep(s, bpf_program__attach_tracepoint(prog, t->category, t->name), what, err);
}
