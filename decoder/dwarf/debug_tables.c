/* Opening the DWARF of code files, and finding the unit of an address. */
#include "decoder/dwarf/debug_tables.h"
#include "base/bisect.h"
#include "decoder/image/elf_impl.h"

#include "base/log.h"

#include <dwarf.h>
#include <endian.h>
#include <gelf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* By default libdw prints something, and what stdio holds of the parent's with it. */
static __attribute__((noreturn)) void give_up(void)
{
    _exit(1);
}

/* Compressed tables take so many times their bytes at most, and some for small ones: compilers' come to 10
 * times. */
enum { RATIO = 32, FREE = 16 << 20 };

/* The bytes that a section takes when it is opened; 0: it is not compressed. */
static uint64_t opened_size(Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
    uint64_t size = 0;
    GElf_Chdr packed;
    Elf_Data *raw;

    if (header->sh_flags & SHF_COMPRESSED)
        return gelf_getchdr(section, &packed) ? packed.ch_size : 0;
    if (strncmp(name, ".zdebug", 7) != 0)
        return 0;
    raw = elf_rawdata(section, NULL);
    if (raw && raw->d_buf && raw->d_size >= 12 && !memcmp(raw->d_buf, "ZLIB", 4))
        memcpy(&size, (const char *)raw->d_buf + 4, sizeof(size));
    return be64toh(size);
}

/* libdw opens all compressed tables at once, whatever that takes. */
bool debug_is_affordable(const struct dec_elf *elf, const char *path)
{
    uint64_t opened, left = FREE;
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    const char *name;

    while ((section = elf_nextscn(elf->elf, section))) {
        name = gelf_getshdr(section, &header) ? elf_section_name(elf, &header) : "";
        opened = *name ? opened_size(section, &header, name) : 0;
        if (!opened)
            continue;
        if (header.sh_size < UINT32_MAX)
            left += RATIO * header.sh_size;
        if (opened > left) {
            st_log_warn("%s: its section %s takes %llu bytes of memory when it is opened, of %llu: too much. "
                        "Its source "
                        "lines and what was inlined are not known",
                        path, name, (unsigned long long)opened, (unsigned long long)header.sh_size);
            return false;
        }
        left -= opened;
    }
    return true;
}

/* A module that is not linked has its lines at addresses that only relocations tell: they are not looked for.
 */
static bool take_dwarf(struct image_lines *lines, const char *path)
{
    GElf_Ehdr header;

    if (!debug_is_affordable(&lines->elf, path))
        return false;

    if (!gelf_getehdr(lines->elf.elf, &header) || header.e_type == ET_REL)
        return false;
    lines->dwarf = dwarf_begin_elf(lines->elf.elf, DWARF_C_READ, NULL);
    if (!lines->dwarf)
        return false;
    dwarf_new_oom_handler(lines->dwarf, give_up);
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
    return take_dwarf(lines, file->pub.path);
}

/* The file's own tables, else those of the debug file that belongs to it. */
static void open_tables(struct image_lines *lines, struct image_file *file)
{
    struct dec_elf own;
    bool found;

    if (file->fd >= 0)
        lines->open = dec_elf_open_fd(file->fd, &lines->elf) == 0;
    if (!lines->open || take_dwarf(lines, file->pub.path))
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

struct image_lines *debug_tables_of(struct image_file *file)
{
    if (file->lines || file->no_lines)
        return file->lines;
    file->lines = calloc(1, sizeof(*file->lines));
    if (!file->lines)
        return NULL;
    file->lines->fd = -1;
    open_tables(file->lines, file);
    return file->lines;
}

/* The last range that begins at or before the address, if it holds it. */
const struct unit_range *debug_unit_at(const struct image_lines *lines, uint64_t address)
{
    size_t first = st_bisect(i, lines->ranges.n, lines->ranges.at[i].start <= address);

    return first && address < lines->ranges.at[first - 1].end ? &lines->ranges.at[first - 1] : NULL;
}

static bool has_table(const struct dec_elf *elf)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    const char *name;
    size_t names;

    if (elf_getshdrstrndx(elf->elf, &names))
        return false;
    while ((section = elf_nextscn(elf->elf, section))) {
        name = gelf_getshdr(section, &header) ? elf_strptr(elf->elf, names, header.sh_name) : NULL;
        if (name && (!strcmp(name, ".debug_line") || !strcmp(name, ".zdebug_line")))
            return true;
    }
    return false;
}

/* Whether the file has a line table, or a debug file. */
bool debug_may_have(const struct image_file *file)
{
    struct dec_elf elf;
    bool may;
    int fd;

    if (file->bytes || file->fd < 0 || dec_elf_open_fd(file->fd, &elf))
        return false;
    may = has_table(&elf);
    if (!may) {
        fd = image_find_debug(file, &elf);
        may = fd >= 0;
        if (may)
            close(fd);
    }
    dec_elf_close(&elf);
    return may;
}

void debug_be_child(void)
{
    const struct rlimit none = {0};
    sigset_t no_signal;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    for (int i = 1; i < NSIG; i++)
        if (i != SIGSYS) /* that one tells which system call was denied */
            signal(i, SIG_DFL);
    sigemptyset(&no_signal);
    sigprocmask(SIG_SETMASK, &no_signal, NULL);
}
