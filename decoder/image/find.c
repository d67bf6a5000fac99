/* Where the file behind a mapping is: the path, the build-id folders, the vdso of this process. */
#include "decoder/image/image_impl.h"

#include "base/infile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

int image_open(const struct dec_images *images, const char *path)
{
    int fd = images->options.open ? images->options.open(images->options.open_ctx, path)
                                  : st_infile_open(path, ST_INFILE_FILE);
    struct stat status;
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return fd;
    close(fd);
    errno = ENOENT;
    return -1;
}

enum verdict { FITS, OTHER_FILE, NO_FILE };

/* What is searched for, and the best reason why it was not found so far. */
struct search {
    const struct dec_images *images;

    const struct dec_image_id *id;

    size_t want; /* bytes of build id that must match; 0: any file will do */

    struct image_found *found;

    bool other; /* a file was there, but another one */

    int error; /* why a file that may be there was not opened; 0: none of them */
};

/* Says nothing of whether the file is there. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

static enum verdict try_path(struct search *s, const char *path)
{
    struct dec_elf elf;
    int fd = image_open(s->images, path);
    if (fd < 0) {
        if (!s->error && is_shortage(errno))
            s->error = errno;
        return NO_FILE;
    }
    bool is_elf = dec_elf_open_fd(fd, &elf) == 0;
    size_t size = is_elf ? elf.build_id_size : 0;
    bool fits = s->want == 0 || (size == s->want && memcmp(elf.build_id, s->id->build_id, size) == 0);
    if (fits && size) {
        memcpy(s->found->build_id, elf.build_id, size);
        s->found->build_id_size = (uint8_t)size;
    }
    if (is_elf)
        dec_elf_close(&elf);
    if (!fits) {
        close(fd);
        s->other = true;
        return OTHER_FILE;
    }
    s->found->fd = fd;
    snprintf(s->found->opened, sizeof(s->found->opened), "%s", path);
    return FITS;
}

static bool try_format(struct search *s, const char *format, const char *a, const char *b)
    __attribute__((format(printf, 2, 0)));

static bool try_format(struct search *s, const char *format, const char *a, const char *b)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), format, a, b);
    return n > 0 && (size_t)n < sizeof(path) && try_path(s, path) == FITS;
}

/* perf's cache: DIR/.build-id/xx/rest is a link to a folder with the file in it, in older caches to the file
 * itself. */
static bool try_build_id_dir(struct search *s, const char *dir)
{
    char hex[2 * DEC_BUILD_ID_MAX + 1], part[2 * DEC_BUILD_ID_MAX + 16];
    static const char *const ends[] = {"", "/elf", "/vdso"};
    image_hex(s->id->build_id, s->want, hex);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(part, sizeof(part), "%.2s/%s%s", hex, hex + 2, ends[i]);
        if (try_format(s, "%s/.build-id/%s", dir, part))
            return true;
    }
    return false;
}

static bool try_build_id_dirs(struct search *s)
{
    const struct dec_images_options *options = &s->images->options;
    if (s->want < 2)
        return false;
    for (size_t i = 0; i < options->nbuild_id_dirs; i++) {
        if (try_build_id_dir(s, options->build_id_dirs[i]))
            return true;
    }
    const char *home = getenv("HOME");
    char dir[4096];
    if (options->nbuild_id_dirs || !home || snprintf(dir, sizeof(dir), "%s/.debug", home) >= (int)sizeof(dir))
        return false;
    return try_build_id_dir(s, dir);
}

/* The end of the vdso's ELF file in memory: whichever of its segments and its section headers ends last. */
static size_t vdso_size(const uint8_t *base)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)base;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(base + header->e_phoff);
    size_t end = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset + segments[i].p_filesz > end)
            end = segments[i].p_offset + segments[i].p_filesz;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (end + page - 1) / page * page;
}

/* This process's vdso is the recorded one when it has its build id, or when none was recorded and the boot is
 * the same. */
static int try_own_vdso(struct search *s, struct st_error *err)
{
    const uint8_t *base = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    struct dec_elf elf;
    if (!base || !s->images->options.own_vdso)
        return 0;
    size_t size = vdso_size(base);
    uint8_t *copy = malloc(size);
    if (!copy)
        return st_nomem(err, "the vdso");
    memcpy(copy, base, size);
    bool fits = dec_elf_open_bytes(copy, size, &elf) == 0;
    if (fits) {
        fits = s->want == 0 ||
               (elf.build_id_size == s->want && memcmp(elf.build_id, s->id->build_id, s->want) == 0);
        memcpy(s->found->build_id, elf.build_id, elf.build_id_size);
        s->found->build_id_size = elf.build_id_size;
        dec_elf_close(&elf);
    }
    if (!fits) {
        s->other = true;
        free(copy);
        return 0;
    }
    s->found->bytes = copy;
    s->found->nbytes = size;
    return 1;
}

static void explain(struct search *s, const char *path, bool deleted)
{
    char hex[2 * DEC_BUILD_ID_MAX + 1];
    struct image_found *found = s->found;
    image_hex(s->id->build_id, s->want, hex);
    found->state = s->other || deleted ? DEC_IMAGE_STALE : DEC_IMAGE_MISSING;
    if (s->other && path[0] == '[')
        snprintf(found->detail, sizeof(found->detail),
                 "%.300s of another kernel (build id %s) is in no build-id folder", path, hex);
    else if (s->other)
        snprintf(found->detail, sizeof(found->detail), "%.300s is another file now (build id %s was mapped)",
                 path, hex);
    else if (deleted)
        snprintf(found->detail, sizeof(found->detail), "%.300s was deleted or replaced while it was mapped",
                 path);
    else if (s->error)
        snprintf(found->detail, sizeof(found->detail), "%.300s could not be opened: %s", path,
                 strerror(s->error));
    else if (s->want)
        snprintf(found->detail, sizeof(found->detail),
                 "%.300s is not there, nor is its build id %s in a build-id folder", path, hex);
    else
        snprintf(found->detail, sizeof(found->detail), "%.300s is not there", path);
    memcpy(found->build_id, s->id->build_id ? s->id->build_id : (const uint8_t *)"", s->want);
    found->build_id_size = (uint8_t)s->want;
}

int image_find(const struct dec_images *images, const struct dec_image_id *id, const char *path, bool deleted,
               struct image_found *found, struct st_error *err)
{
    struct search s = {.images = images, .id = id, .found = found};
    s.want = id->build_id_size < DEC_BUILD_ID_MAX ? id->build_id_size : DEC_BUILD_ID_MAX;
    const char *symfs = images->options.symfs ? images->options.symfs : "";
    bool special = path[0] == '[';
    /* Without a build id nothing tells whether the file that bears a deleted one's name is the same. */
    bool by_name = !special && !(deleted && s.want == 0);
    if ((by_name && try_format(&s, "%s%s", symfs, path)) || try_build_id_dirs(&s))
        return 0;
    if (strcmp(path, "[vdso]") == 0) {
        int rc = try_own_vdso(&s, err);
        if (rc)
            return rc > 0 ? 0 : rc;
    }
    explain(&s, path, deleted);
    return 0;
}

static uint32_t crc32_of(int fd)
{
    uint8_t bytes[8192];
    uint32_t crc = 0xffffffffu;
    off_t at = 0;
    ssize_t n;
    while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            crc ^= bytes[i];
            for (int bit = 0; bit < 8; bit++)
                crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
        at += n;
    }
    return ~crc;
}

/* A debug file belongs to the image if both have the same build id or, where there is none, the checksum of
 * the link. */
static int open_debug(const struct image_file *image, const char *path, const struct dec_elf *elf,
                      uint32_t crc)
{
    struct dec_elf debug;
    int fd = image_open(image->store, path);
    if (fd < 0 || dec_elf_open_fd(fd, &debug)) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    bool same = debug.build_id_size == elf->build_id_size &&
                memcmp(debug.build_id, elf->build_id, elf->build_id_size) == 0;
    bool fits = elf->build_id_size ? same : crc32_of(fd) == crc;
    dec_elf_close(&debug);
    if (fits)
        return fd;
    close(fd);
    return -1;
}

static int debug_by_id(const struct image_file *image, const struct dec_elf *elf, const char *dir)
{
    char hex[2 * DEC_BUILD_ID_MAX + 1], path[4096];
    if (elf->build_id_size < 2)
        return -1;
    image_hex(elf->build_id, elf->build_id_size, hex);
    const char *symfs = image->store->options.symfs ? image->store->options.symfs : "";
    snprintf(path, sizeof(path), "%s%s/.build-id/%.2s/%s.debug", symfs, dir, hex, hex + 2);
    return open_debug(image, path, elf, 0);
}

/* As gdb looks for it: beside the file, in .debug beside it, below the debug folder. */
static int debug_by_link(const struct image_file *image, const struct dec_elf *elf, const char *dir)
{
    uint32_t crc;
    const char *link = dec_elf_debuglink(elf, &crc);
    const char *slash = image->pub.opened ? strrchr(image->pub.opened, '/') : NULL;
    if (!link || !slash || strchr(link, '/'))
        return -1;
    int folder = (int)(slash - image->pub.opened);
    const char *from = image->pub.opened;
    char path[4096];
    int fd = -1;
    snprintf(path, sizeof(path), "%.*s/.debug/%s", folder, from, link);
    fd = open_debug(image, path, elf, crc);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof(path), "%s%.*s/%s", dir, folder, from, link);
    fd = open_debug(image, path, elf, crc);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof(path), "%.*s/%s", folder, from, link);
    return strcmp(path, from) == 0 ? -1 : open_debug(image, path, elf, crc);
}

int image_find_debug(const struct image_file *image, const struct dec_elf *elf)
{
    static const char *const usual[] = {"/usr/lib/debug"};
    const struct dec_images_options *options = &image->store->options;
    const char *const *dirs = options->debug_dirs ? options->debug_dirs : usual;
    size_t n = options->debug_dirs ? options->ndebug_dirs : 1;
    for (size_t i = 0; i < n; i++) {
        int fd = debug_by_id(image, elf, dirs[i]);
        if (fd < 0)
            fd = debug_by_link(image, elf, dirs[i]);
        if (fd >= 0)
            return fd;
    }
    return -1;
}
