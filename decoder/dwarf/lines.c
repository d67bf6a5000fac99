/* Line tables, through libdw, in a process of their own. */
#include "decoder/dwarf/lines.h"

#include "decoder/dwarf/debug_tables.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SECONDS = 30,       /* of the child */
    LONGEST_FILE = 4096 /* name, its NUL included */
};

/* Of the rows that one address has, the first: where a function begins, those behind it are of what was moved
 * to its first instruction. */
static Dwarf_Line *row_at(Dwarf_Die *unit, uint64_t address)
{
    Dwarf_Lines *rows;
    size_t low = 0, high, n;
    Dwarf_Addr at = 0;
    bool end = true;
    Dwarf_Line *row;

    if (dwarf_getsrclines(unit, &rows, &n))
        return NULL;
    for (high = n; low < high;) {
        size_t middle = low + (high - low) / 2;

        if (dwarf_lineaddr(dwarf_onesrcline(rows, middle), &at))
            return NULL;
        if (at < address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n; low++) {
        row = dwarf_onesrcline(rows, low);
        if (dwarf_lineaddr(row, &at) || at != address)
            break;
        if (!dwarf_lineendsequence(row, &end) && !end)
            return row;
    }
    return dwarf_getsrc_die(unit, address);
}

/* What the child tells, followed by the file's name and the function's. */
struct answer {
    uint64_t query;

    int32_t line, level;

    uint32_t size, function_size; /* of the names, their NULs included */
};

/* Of a query that is being answered. */
struct telling {
    FILE *out;

    struct answer answer;

    bool failed;
};

static void tell(struct telling *t, const char *function, const char *file, int line)
{
    struct answer *a = &t->answer;

    function = function && strlen(function) < LONGEST_FILE ? function : "";
    if (t->failed || line <= 0 || !file || !*file || strlen(file) >= LONGEST_FILE)
        return;
    a->line = line;
    a->size = (uint32_t)strlen(file) + 1;
    a->function_size = (uint32_t)strlen(function) + 1;
    t->failed = fwrite(a, sizeof(*a), 1, t->out) != 1 || fwrite(file, a->size, 1, t->out) != 1 ||
                fwrite(function, a->function_size, 1, t->out) != 1;
    a->level++;
}

static int number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;

    if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) || value > INT32_MAX)
        return 0;
    return (int)value;
}

/* From the innermost function that was inlined at the address outwards: each one's line, and where it is
 * called. */
static void tell_inlined(struct telling *t, Dwarf_Die *unit, uint64_t address, const char *file, int line)
{
    Dwarf_Die *scopes = NULL;
    Dwarf_Files *files;
    size_t nfiles;
    int n = dwarf_getsrcfiles(unit, &files, &nfiles) ? 0 : dwarf_getscopes(unit, address, &scopes);

    for (int i = 0; i < n && dwarf_tag(&scopes[i]) != DW_TAG_subprogram; i++) {
        size_t called;

        if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
            continue;
        tell(t, dwarf_diename(&scopes[i]), file, line);
        called = (size_t)number_of(&scopes[i], DW_AT_call_file);
        file = called < nfiles ? dwarf_filesrc(files, called, NULL, NULL) : NULL;
        line = number_of(&scopes[i], DW_AT_call_line);
    }
    free(scopes);
    tell(t, "", file, line);
}

static void tell_query(struct telling *t, const struct dec_line_query *query)
{
    struct image_lines *lines = debug_tables_of(image_file_of(query->image));
    const struct unit_range *range;
    Dwarf_Line *row;
    Dwarf_Die unit;
    uint64_t address;
    const char *file;
    int line;

    if (!lines || !lines->dwarf)
        return;
    address = query->address - lines->shift;
    range = debug_unit_at(lines, address);
    if (!range || !dwarf_offdie(lines->dwarf, range->unit, &unit))
        return;
    row = query->inlined ? dwarf_getsrc_die(&unit, address) : row_at(&unit, address);
    if (!row || dwarf_lineno(row, &line))
        return;
    file = dwarf_linesrc(row, NULL, NULL);
    if (query->inlined)
        tell_inlined(t, &unit, address, file, line);
    else
        tell(t, "", file, line);
}

static void tell_all(const struct dec_line_query *queries, size_t n, FILE *out)
{
    struct telling t = {.out = out};

    for (size_t i = 0; i < n && !t.failed; i++) {
        t.answer = (struct answer){.query = i};
        if (queries[i].image)
            tell_query(&t, &queries[i]);
    }
    fflush(out);
}

/* Does not return, nor does it leave anything behind. */
static __attribute__((noreturn)) void be_child(const struct dec_line_query *queries, size_t n, int fd)
{
    FILE *out;

    debug_be_child();
    alarm(SECONDS);
    out = fdopen(fd, "w");
    if (out)
        tell_all(queries, n, out);
    _exit(0);
}

static bool take_name(FILE *in, char name[LONGEST_FILE], uint32_t size)
{
    if (size == 0 || size > LONGEST_FILE || fread(name, size, 1, in) != 1)
        return false;
    name[size - 1] = '\0';
    return true;
}

static int take_all(FILE *in, size_t n, dec_line_fn *fn, void *ctx)
{
    char file[LONGEST_FILE], function[LONGEST_FILE];
    struct answer a;
    int rc = 0;

    while (!rc && fread(&a, sizeof(a), 1, in) == 1) {
        struct dec_line line = {(size_t)a.query, a.level, function, file, a.line};

        if (a.query >= n || !take_name(in, file, a.size) || !take_name(in, function, a.function_size))
            break;
        rc = fn(ctx, &line);
    }
    return rc;
}

static bool any_lines(const struct dec_line_query *queries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct image_file *file = queries[i].image ? image_file_of(queries[i].image) : NULL;

        if (!file || file->no_lines)
            continue;
        if (debug_may_have(file))
            return true;
        file->no_lines = true;
    }
    return false;
}

int dec_lines(const struct dec_line_query *queries, size_t n, dec_line_fn *fn, void *ctx)
{
    int ends[2], rc = 0;
    pid_t child;
    FILE *in;

    if (!any_lines(queries, n) || pipe2(ends, O_CLOEXEC))
        return 0;
    child = fork();
    if (child == 0) {
        close(ends[0]); /* else it would not notice that nobody reads any more */
        be_child(queries, n, ends[1]);
    }
    close(ends[1]);
    in = child > 0 ? fdopen(ends[0], "r") : NULL;
    if (in) {
        rc = take_all(in, n, fn, ctx);
        fclose(in);
    } else {
        close(ends[0]);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return rc;
}
