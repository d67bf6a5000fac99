/* Where the unwind tables of code files were mapped. perf unwinds a stack that is stored in a sample by the
 * tables as they lay in memory, in the segments beside the code; the side-band tells of code alone. */
#include "recorder/snapshot/snapshot_impl.h"

#include "triggers/elf_read.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_SEGMENTS = 64 };

static uint64_t down(uint64_t x)
{
    return x & ~(uint64_t)(PAGE - 1);
}

ssize_t snap_read_headers(int fd, const void *question, size_t size, void *answer, size_t room)
{
    Elf64_Ehdr head;
    size_t bytes;

    (void)question;
    (void)size;
    if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
        return 0;
    bytes = (head.e_phnum < MOST_SEGMENTS ? head.e_phnum : MOST_SEGMENTS) * sizeof(Elf64_Phdr);
    return bytes <= room && pread(fd, answer, bytes, (off_t)head.e_phoff) == (ssize_t)bytes ? (ssize_t)bytes
                                                                                            : 0;
}

/* The program headers of a 64-bit ELF file. Returns how many; 0: it is none. */
static size_t ask_headers(struct st_confined *child, const char *path, Elf64_Phdr headers[MOST_SEGMENTS])
{
    ssize_t n = trg_elf_ask(child, path, "read the segments of", snap_read_headers, NULL, 0, headers,
                            MOST_SEGMENTS * sizeof(*headers), NULL, NULL);

    return n > 0 ? (size_t)n / sizeof(*headers) : 0;
}

/* What is added to the file's addresses where it is mapped. 0, or -1: the mapping is no segment of it. */
static int bias_of(const Elf64_Phdr *headers, size_t n, const struct rec_mmap2_record *map, uint64_t *bias)
{
    for (size_t i = 0; i < n; i++)
        if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X &&
            down(headers[i].p_offset) == map->pgoff) {
            *bias = map->addr - down(headers[i].p_vaddr);
            return 0;
        }
    return -1;
}

static int write_segment(struct snap *s, const struct rec_mmap2_record *code, uint64_t bias,
                         const Elf64_Phdr *segment, struct st_error *err)
{
    uint64_t buffer[(UINT16_MAX + 1) / sizeof(uint64_t)];
    struct rec_mmap2_record *map = (struct rec_mmap2_record *)buffer;
    uint64_t start = down(segment->p_vaddr);

    memcpy(buffer, code, code->header.size);
    map->header.misc |= PERF_RECORD_MISC_MMAP_DATA;
    map->addr = bias + start;
    map->len = down(segment->p_vaddr + segment->p_filesz + PAGE - 1) - start;
    map->pgoff = down(segment->p_offset);
    map->prot = PROT_READ;
    return pd_writer_record(s->w, &map->header, err);
}

bool snap_wants_segments(const struct rec_facts *facts)
{
    return facts->records && facts->recorded.at[0].attr.sample_type & PERF_SAMPLE_STACK_USER;
}

int snap_write_segments(struct snap *s, const struct rec_mmap2_record *code, struct st_error *err)
{
    Elf64_Phdr headers[MOST_SEGMENTS];
    uint64_t bias;
    size_t n;
    int rc = 0;

    if (!(code->prot & PROT_EXEC) || code->filename[0] != '/' || code->filename[1] == '/')
        return 0;
    n = ask_headers(&s->child, code->filename, headers);
    if (bias_of(headers, n, code, &bias))
        return 0;
    for (size_t i = 0; i < n && !rc; i++)
        if (headers[i].p_type == PT_LOAD && !(headers[i].p_flags & (PF_X | PF_W)))
            rc = write_segment(s, code, bias, &headers[i], err);
    return rc;
}
