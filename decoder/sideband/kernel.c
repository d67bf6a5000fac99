/* The kernel's code and names as the snapshot carries them: perf's kcore_dir (kcore, kallsyms). */
#include "decoder/sideband/sideband_impl.h"

#include "base/infile.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int map_segments(struct sb_context *c, Elf *elf, struct dec_image *image, struct st_error *err)
{
    size_t n;
    int rc = 0;

    if (elf_getphdrnum(elf, &n))
        n = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        GElf_Phdr p;

        if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD)
            continue;
        rc = dec_space_map(c->sb->kernel, 0, p.p_vaddr, p.p_filesz, p.p_offset, image, err);
        c->has_kcore = true;
    }
    return rc;
}

static int map_file(struct sb_context *c, const char *path, struct dec_image *image, struct st_error *err)
{
    int fd = st_infile_open(path, ST_INFILE_FILE);
    Elf *elf;
    int rc;

    if (fd < 0) {
        st_log_warn("cannot open '%s': %s; kernel code is a gap", path, strerror(errno));
        return 0;
    }
    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    rc = elf ? map_segments(c, elf, image, err) : 0;
    elf_end(elf);
    close(fd);
    if (!rc && !c->has_kcore)
        st_log_warn("'%s' is no kernel image; kernel code is a gap", path);
    return rc;
}

/* A line "ADDRESS TYPE NAME[\tMODULE]"; only code has a name here. `offset` leads from an address to the
 * image's own. */
static int add_name(struct sb_context *c, struct dec_image *image, uint64_t offset, char *line,
                    struct st_error *err)
{
    char *end;
    uint64_t address = strtoull(line, &end, 16);
    char *name, *module;

    if (*end != ' ' || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
        return 0;
    name = end + 3;
    name[strcspn(name, "\n")] = '\0';
    module = strchr(name, '\t');
    if (module)
        *module++ = '\0';
    if (!strcmp(name, "__switch_to"))
        c->sb->switch_to = address;
    return *name && address ? dec_image_add_symbol(image, address + offset, 0, name, module, err) : 0;
}

static int add_names(struct sb_context *c, const char *path, struct dec_image *image, uint64_t offset,
                     struct st_error *err)
{
    int fd = st_infile_open(path, ST_INFILE_FILE);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    char *line = NULL;
    size_t size = 0;
    int rc = 0;

    if (!file) {
        st_log_warn("cannot open '%s': %s; kernel functions have no names", path, strerror(errno));
        return 0;
    }
    while (!rc && getline(&line, &size, file) > 0)
        rc = add_name(c, image, offset, line, err);
    free(line);
    fclose(file);
    return rc;
}

int sb_map_kcore(struct sb_context *c, struct st_error *err)
{
    const char *dir = pd_reader_kcore_dir(c->reader);
    struct dec_image_id id = {.kernel = true, .pid = -1};
    struct dec_image *image;
    char path[PATH_MAX];
    int rc;

    if (!dir || (size_t)snprintf(path, sizeof(path), "%s/kcore", dir) >= sizeof(path) - sizeof("kallsyms"))
        return 0;
    id.path = path;
    rc = dec_images_get(c->images, &id, &image, err);
    if (!rc)
        rc = map_file(c, path, image, err);
    if (rc || !c->has_kcore)
        return rc;
    snprintf(strrchr(path, '/') + 1, sizeof("kallsyms"), "kallsyms");
    return add_names(c, path, image, 0, err);
}

/* The address that this machine's kernel has for a symbol; 0: not known, or not shown to this user. */
static uint64_t running_kernel_has(const char *symbol)
{
    int fd = st_infile_open("/proc/kallsyms", ST_INFILE_FILE);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    uint64_t found = 0;
    char *line = NULL;
    size_t size = 0;

    while (file && !found && getline(&line, &size, file) > 0) {
        const char *name = strrchr(line, ' ');

        line[strcspn(line, "\n")] = '\0';
        if (name && !strcmp(name + 1, symbol))
            found = strtoull(line, NULL, 16);
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

int sb_name_running_kernel(struct sb_context *c, const struct sb_kernel_map *map, struct st_error *err)
{
    static const char prefix[] = "[kernel.kallsyms]";
    const char *symbol = map->name + sizeof(prefix) - 1;

    if (c->kernel_named || strncmp(map->name, prefix, sizeof(prefix) - 1) != 0 || !*symbol || !map->pgoff ||
        running_kernel_has(symbol) != map->pgoff)
        return 0;
    c->kernel_named = true;
    return add_names(c, "/proc/kallsyms", map->image, map->pgoff - map->address, err);
}
