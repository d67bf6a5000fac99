/* Changes an ELF file where readers look: a field of a header, or the contents of one section, so that the
 * rest is still found. */
#include "fuzz.h"

#include <elf.h>

struct part {
    uint64_t at, size;
};

/* The table of `n` entries of `width` bytes, one of them; false where it is not in the file. */
static bool entry_of(size_t size, uint64_t table, uint64_t n, uint64_t width, unsigned *seed,
                     struct part *entry)
{
    if (!n || table > size)
        return false;
    entry->at = table + (uint64_t)rand_r(seed) % n * width;
    entry->size = width;
    return entry->at <= size && width <= size - entry->at;
}

static bool section_of(const uint8_t *data, size_t size, const Elf64_Ehdr *head, unsigned *seed,
                       struct part *contents)
{
    struct part entry;
    Elf64_Shdr section;

    if (!entry_of(size, head->e_shoff, head->e_shnum, sizeof(section), seed, &entry))
        return false;
    memcpy(&section, data + entry.at, sizeof(section));
    *contents = (struct part){section.sh_offset, section.sh_size};
    return section.sh_type != SHT_NOBITS && contents->at < size && contents->size &&
           contents->size <= size - contents->at;
}

/* A field of a header, aligned as they are. */
static void change_field(uint8_t *data, const struct part *entry, unsigned *seed)
{
    size_t width = 2u << (unsigned)rand_r(seed) % 3;

    if (entry->size >= width)
        fuzz_number(data + entry->at + (uint64_t)rand_r(seed) % (entry->size / width) * width, width, seed);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    Elf64_Ehdr head;
    struct part part = {0, sizeof(head)};
    int what = rand_r(&seed) % 8;

    if (size < sizeof(head) || memcmp(data, ELFMAG, SELFMAG) || what == 0)
        return LLVMFuzzerMutate(data, size, most);
    memcpy(&head, data, sizeof(head));
    if (what > 3 && section_of(data, size, &head, &seed, &part)) {
        if (what < 6)
            LLVMFuzzerMutate(data + part.at, part.size, part.size);
        else
            change_field(data, &part, &seed);
        return size;
    }
    if (what == 1 ? entry_of(size, head.e_phoff, head.e_phnum, sizeof(Elf64_Phdr), &seed, &part)
                  : entry_of(size, head.e_shoff, head.e_shnum, sizeof(Elf64_Shdr), &seed, &part))
        change_field(data, &part, &seed);
    else
        change_field(data, &(struct part){0, sizeof(head)}, &seed);
    return size;
}
