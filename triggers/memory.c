/* Another process's memory, and the symbols of an image in it. All of it may be hostile: each read is
 * bounded. */
#include "triggers/memory.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_SEGMENTS = 64,
    MOST_DYNAMIC = 128,
    MOST_CHAIN = 4096, /* symbols of one bucket */
    LONGEST_NAME = 64,
};

/* What the dynamic section tells. */
struct image {
    int memory;

    uint64_t bias;

    uint64_t symbols, strings, hash;
};

int trg_memory_open(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool trg_memory_read(int memory, uint64_t at, void *to, size_t n)
{
    return at <= INT64_MAX && pread(memory, to, n, (off_t)at) == (ssize_t)n;
}

/* glibc's loader puts addresses in the place of the file's values, others' leave these. */
static uint64_t address(const struct image *image, uint64_t base, uint64_t value)
{
    return value >= base ? value : value + image->bias;
}

static bool read_dynamic(struct image *image, uint64_t base, uint64_t at)
{
    Elf64_Dyn entry;

    for (int i = 0; i < MOST_DYNAMIC && trg_memory_read(image->memory, at, &entry, sizeof(entry)) &&
                    entry.d_tag != DT_NULL;
         i++, at += sizeof(entry)) {
        if (entry.d_tag == DT_SYMTAB)
            image->symbols = address(image, base, entry.d_un.d_ptr);
        else if (entry.d_tag == DT_STRTAB)
            image->strings = address(image, base, entry.d_un.d_ptr);
        else if (entry.d_tag == DT_GNU_HASH)
            image->hash = address(image, base, entry.d_un.d_ptr);
    }
    return image->symbols && image->strings && image->hash;
}

static bool read_image(struct image *image, uint64_t base)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    uint64_t dynamic = 0;
    bool loaded = false;

    if (!trg_memory_read(image->memory, base, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(segment))
        return false;
    for (int i = 0; i < head.e_phnum && i < MOST_SEGMENTS; i++) {
        if (!trg_memory_read(image->memory, base + head.e_phoff + (uint64_t)i * sizeof(segment), &segment,
                             sizeof(segment)))
            return false;
        if (segment.p_type == PT_LOAD && !loaded) {
            loaded = true;
            image->bias = base - (segment.p_vaddr & ~0xfffull);
        }
        if (segment.p_type == PT_DYNAMIC)
            dynamic = segment.p_vaddr;
    }
    return loaded && dynamic && read_dynamic(image, base, dynamic + image->bias);
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;

    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* The symbol's value, if its name is this one and it is defined. */
static uint64_t symbol_named(const struct image *image, uint32_t index, const char *name)
{
    char text[LONGEST_NAME];
    size_t n = strlen(name) + 1;
    Elf64_Sym symbol;

    if (n > sizeof(text) ||
        !trg_memory_read(image->memory, image->symbols + (uint64_t)index * sizeof(symbol), &symbol,
                         sizeof(symbol)) ||
        symbol.st_shndx == SHN_UNDEF ||
        !trg_memory_read(image->memory, image->strings + symbol.st_name, text, n) || memcmp(text, name, n))
        return 0;
    return symbol.st_value + image->bias;
}

uint64_t trg_memory_symbol(int memory, uint64_t base, const char *name)
{
    struct {
        uint32_t buckets, first, bloom, shift;
    } table;
    struct image image = {.memory = memory};
    uint32_t hash = hash_of(name), index, entry;
    uint64_t at, found = 0;

    if (!read_image(&image, base) || !trg_memory_read(memory, image.hash, &table, sizeof(table)) ||
        !table.buckets)
        return 0;
    at = image.hash + sizeof(table) + 8ull * table.bloom;
    if (!trg_memory_read(memory, at + 4ull * (hash % table.buckets), &index, sizeof(index)))
        return 0;
    at += 4ull * table.buckets;
    for (int i = 0; i < MOST_CHAIN && index >= table.first && !found; i++, index++) {
        if (!trg_memory_read(memory, at + 4ull * (index - table.first), &entry, sizeof(entry)))
            return 0;
        if ((entry | 1) == (hash | 1))
            found = symbol_named(&image, index, name);
        if (entry & 1)
            break;
    }
    return found;
}
