/* The build id of an ELF file: PT_NOTE segments, note NT_GNU_BUILD_ID (elf(5), gABI chapter 5 "Note
 * Section"). */
#include "recorder/code/build_id.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_HEADERS = 128,
    MOST_NOTES = 4096, /* bytes of one segment looked at */
};

/* Where the bytes come from: a descriptor, or memory. */
struct image {
    int fd;

    const char *memory;

    size_t size;
};

static bool read_at(const struct image *im, uint64_t offset, void *to, size_t size)
{
    if (im->memory) {
        if (offset > im->size || size > im->size - offset)
            return false;
        memcpy(to, im->memory + offset, size);
        return true;
    }
    return offset < INT64_MAX && pread(im->fd, to, size, (off_t)offset) == (ssize_t)size;
}

static size_t padded(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

static size_t search_notes(const char *notes, size_t size, uint8_t *id)
{
    for (size_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr h; /* the same in 32-bit files */
        size_t name, desc;

        memcpy(&h, notes + at, sizeof(h));
        name = at + sizeof(h);
        if (h.n_namesz > size || h.n_descsz > size)
            return 0;
        desc = name + padded(h.n_namesz);
        if (desc > size || h.n_descsz > size - desc)
            return 0;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(notes + name, "GNU", 4)) {
            if (!h.n_descsz || h.n_descsz > REC_BUILD_ID_MAX)
                return 0;
            memcpy(id, notes + desc, h.n_descsz);
            return h.n_descsz;
        }
        at = desc + padded(h.n_descsz);
        if (at > size)
            return 0;
    }
    return 0;
}

static size_t search_segment(const struct image *im, uint64_t offset, uint64_t size, uint8_t *id)
{
    char notes[MOST_NOTES];

    if (size > sizeof(notes))
        size = sizeof(notes);
    return size >= sizeof(Elf64_Nhdr) && read_at(im, offset, notes, size) ? search_notes(notes, size, id) : 0;
}

static size_t search64(const struct image *im, uint8_t *id)
{
    Elf64_Ehdr e;
    size_t found = 0;

    if (!read_at(im, 0, &e, sizeof(e)) || e.e_phentsize != sizeof(Elf64_Phdr))
        return 0;
    for (int i = 0; !found && i < e.e_phnum && i < MOST_HEADERS; i++) {
        Elf64_Phdr p;

        if (!read_at(im, e.e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p)))
            return 0;
        if (p.p_type == PT_NOTE)
            found = search_segment(im, p.p_offset, p.p_filesz, id);
    }
    return found;
}

static size_t search32(const struct image *im, uint8_t *id)
{
    Elf32_Ehdr e;
    size_t found = 0;

    if (!read_at(im, 0, &e, sizeof(e)) || e.e_phentsize != sizeof(Elf32_Phdr))
        return 0;
    for (int i = 0; !found && i < e.e_phnum && i < MOST_HEADERS; i++) {
        Elf32_Phdr p;

        if (!read_at(im, e.e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p)))
            return 0;
        if (p.p_type == PT_NOTE)
            found = search_segment(im, p.p_offset, p.p_filesz, id);
    }
    return found;
}

static size_t search(const struct image *im, uint8_t *id)
{
    unsigned char ident[EI_NIDENT];

    if (!read_at(im, 0, ident, sizeof(ident)) || memcmp(ident, ELFMAG, SELFMAG) ||
        ident[EI_DATA] != ELFDATA2LSB)
        return 0;
    return ident[EI_CLASS] == ELFCLASS64   ? search64(im, id)
           : ident[EI_CLASS] == ELFCLASS32 ? search32(im, id)
                                           : 0;
}

size_t rec_build_id_of_fd(int fd, uint8_t id[REC_BUILD_ID_MAX])
{
    return search(&(struct image){.fd = fd}, id);
}

size_t rec_build_id_of_memory(const void *image, size_t size, uint8_t id[REC_BUILD_ID_MAX])
{
    return search(&(struct image){.fd = -1, .memory = image, .size = size}, id);
}

static ssize_t answer_id(int fd, const void *image, size_t size, void *id, size_t room)
{
    if (room < REC_BUILD_ID_MAX)
        return 0;
    return (ssize_t)(fd >= 0 ? rec_build_id_of_fd(fd, id) : rec_build_id_of_memory(image, size, id));
}

size_t rec_build_id_ask(struct st_confined *child, int fd, const void *image, size_t size,
                        uint8_t id[REC_BUILD_ID_MAX])
{
    const struct st_confined_question q = {"read the build id of a file of the target", answer_id, fd, image,
                                           fd >= 0 ? 0 : size};
    struct st_error why = {0};
    ssize_t n = st_confined_ask(child, &q, id, REC_BUILD_ID_MAX, &why);

    if (n < 0)
        st_confined_say(child, &why);
    return n > 0 ? (size_t)n : 0;
}
