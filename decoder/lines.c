/* Line tables, through libdw. */
#include "decoder/lines.h"

#include "base/vec.h"
#include "decoder/image_int.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Code of a compilation unit. */
struct unit_range {
    uint64_t start, end;

    Dwarf_Off unit; /* of its DIE */
};

struct image_lines {
    int fd; /* of the separate debug file; -1: none */

    struct dec_elf elf;

    bool open; /* elf is */

    Dwarf *dwarf; /* NULL: there is none */

    uint64_t shift; /* its addresses -> those of the image */

    ST_VEC(struct unit_range) ranges; /* ascending */
};

static int by_start(const void *x, const void *y)
{
    const struct unit_range *a = x, *b = y;

    return a->start < b->start ? -1 : a->start > b->start;
}

/* The code of a unit. 0 or -1 (no memory). */
static int add_unit(struct image_lines *lines, Dwarf_Die *unit)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;

    while ((at = dwarf_ranges(unit, at, &base, &start, &end)) > 0) {
        struct unit_range range = {start, end, dwarf_dieoffset(unit)};

        /* Code that the linker dropped is left at 0. */
        if (start && start < end && st_vec_push(&lines->ranges, range))
            return -1;
    }
    return 0;
}

static void read_units(struct image_lines *lines)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;

    while (dwarf_get_units(lines->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0)
        if ((type == DW_UT_compile || type == DW_UT_skeleton) && add_unit(lines, &die))
            break;
    if (lines->ranges.n)
        qsort(lines->ranges.at, lines->ranges.n, sizeof(lines->ranges.at[0]), by_start);
}

/* A module that is not linked has its lines at addresses that only relocations tell: they are not looked for.
 */
static bool take_dwarf(struct image_lines *lines)
{
    GElf_Ehdr header;

    if (!gelf_getehdr(lines->elf.elf, &header) || header.e_type == ET_REL)
        return false;
    lines->dwarf = dwarf_begin_elf(lines->elf.elf, DWARF_C_READ, NULL);
    if (!lines->dwarf)
        return false;
    read_units(lines);
    return lines->ranges.n > 0;
}

static void close_tables(struct image_lines *lines)
{
    st_vec_free(&lines->ranges);
    dwarf_end(lines->dwarf);
    lines->dwarf = NULL;
    if (lines->open)
        dec_elf_close(&lines->elf);
    lines->open = false;
    if (lines->fd >= 0)
        close(lines->fd);
    lines->fd = -1;
}

static bool open_debug(struct image_lines *lines, struct image_file *file, const struct dec_elf *elf)
{
    uint64_t text, other;

    lines->fd = image_find_debug(file, elf);
    if (lines->fd < 0)
        return false;
    lines->open = dec_elf_open_fd(lines->fd, &lines->elf) == 0;
    if (!lines->open)
        return false;
    text = dec_elf_text(elf);
    other = dec_elf_text(&lines->elf);
    lines->shift = text && other ? text - other : 0;
    return take_dwarf(lines);
}

/* The file's own tables, else those of the debug file that belongs to it. */
static void open_tables(struct image_lines *lines, struct image_file *file)
{
    struct dec_elf own;
    bool found;

    if (file->bytes)
        lines->open = dec_elf_open_bytes(file->bytes, file->pub.size, &lines->elf) == 0;
    else if (file->fd >= 0)
        lines->open = dec_elf_open_fd(file->fd, &lines->elf) == 0;
    if (!lines->open || take_dwarf(lines))
        return;
    st_vec_free(&lines->ranges);
    dwarf_end(lines->dwarf);
    lines->dwarf = NULL;
    lines->open = false;
    own = lines->elf;
    found = open_debug(lines, file, &own);
    dec_elf_close(&own);
    if (!found)
        close_tables(lines);
}

static struct image_lines *lines_of(struct image_file *file)
{
    if (file->lines)
        return file->lines;
    file->lines = calloc(1, sizeof(*file->lines));
    if (!file->lines)
        return NULL;
    file->lines->fd = -1;
    open_tables(file->lines, file);
    return file->lines;
}

void image_lines_free(struct image_lines *lines)
{
    if (!lines)
        return;
    close_tables(lines);
    free(lines);
}

/* The last range that begins at or before the address, if it holds it. */
static const struct unit_range *range_at(const struct image_lines *lines, uint64_t address)
{
    size_t low = 0, high = lines->ranges.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (lines->ranges.at[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < lines->ranges.at[low - 1].end ? &lines->ranges.at[low - 1] : NULL;
}

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

bool dec_image_line(struct dec_image *image, uint64_t address, struct dec_line *line)
{
    struct image_lines *lines = lines_of(image_file_of(image));
    const struct unit_range *range;
    Dwarf_Line *row;
    Dwarf_Die unit;

    if (!lines || !lines->dwarf)
        return false;
    address -= lines->shift;
    range = range_at(lines, address);
    if (!range || !dwarf_offdie(lines->dwarf, range->unit, &unit))
        return false;
    row = row_at(&unit, address);
    if (!row || dwarf_lineno(row, &line->line) || line->line <= 0)
        return false;
    line->file = dwarf_linesrc(row, NULL, NULL);
    return line->file != NULL;
}
