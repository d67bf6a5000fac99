/* The address space of a process over time: which code stood where, when.
 *
 * Built from mmap, exec, fork records in the order of their times; looked up at any time afterwards. perf
 * records no munmap: a later mapping replaces the part of earlier ones that it overlaps, from its time on.
 * Times are perf clock ns; a mapping that was there before the recording has time 0. */
#ifndef ST_DECODER_IMAGE_SPACE_H
#define ST_DECODER_IMAGE_SPACE_H

#include "base/error.h"
#include "decoder/image/image.h"
#include "decoder/image/symbols.h"

struct dec_mapping {
    uint64_t start, end; /* addresses: [start, end) */

    uint64_t pgoff; /* file offset of start, bytes */

    uint64_t since, until; /* times: [since, until); until UINT64_MAX: to the end */

    struct dec_image *image;
};

struct dec_space;

/* An empty space. `kernel` (may be NULL; not owned, must outlive it) answers for addresses whose top bit is
 * set. ST_ENOMEM. */
int dec_space_new(const struct dec_space *kernel, struct dec_space **space, struct st_error *err);

/* NULL is allowed. Images stay with their store. */
void dec_space_free(struct dec_space *space);

/* A mapping appeared at `time`. A length of 0 is ignored, an end beyond the address space is cut. ST_ENOMEM:
 * the space is as before. */
int dec_space_map(struct dec_space *space, uint64_t time, uint64_t address, uint64_t length, uint64_t pgoff,
                  struct dec_image *image, struct st_error *err);

/* Code bytes changed at `time` (Linux, PERF_RECORD_TEXT_POKE): from then on `fresh` stands at `address`;
 * before, where no earlier change is known, `old`. Either may be empty. The bytes are copied; they belong to
 * the space, so this is not for one that will be forked. What is mapped there later has its own bytes.
 * ST_ENOMEM: part of it may have been done. */
struct dec_code_bytes {
    const uint8_t *at;

    size_t n;
};
int dec_space_patch(struct dec_space *space, uint64_t time, uint64_t address, struct dec_code_bytes old,
                    struct dec_code_bytes fresh, struct st_error *err);

/* The process executed another program: every mapping ends at `time`. */
void dec_space_exec(struct dec_space *space, uint64_t time);

/* `child`, empty, gets the mappings that `parent` has at `time`, since `time`. ST_ENOMEM: the child is empty.
 */
int dec_space_fork(struct dec_space *child, const struct dec_space *parent, uint64_t time,
                   struct st_error *err);

/* The mapping that holds `address` at `time`. Trace times lag a little behind the records of the side-band,
 * so where nothing was mapped at that time, the first mapping of the address after it counts. NULL: none then
 * or later. The pointer is valid until the space changes. */
const struct dec_mapping *dec_space_find(const struct dec_space *space, uint64_t time, uint64_t address);

/* An address with its name. */
struct dec_place {
    const struct dec_mapping *mapping; /* NULL: nothing is mapped there; the rest is then 0 */

    struct dec_symbol *symbol;

    uint64_t start; /* run-time address of the symbol's first byte */

    uint64_t size;
};
void dec_space_symbol(const struct dec_space *space, uint64_t time, uint64_t address,
                      struct dec_place *place);

/* The space that answers for an address: the kernel's, or `space` itself. */
const struct dec_space *dec_space_side(const struct dec_space *space, uint64_t address);

/* Whether code in [address, address + n) was changed at any time. */
bool dec_space_patched(const struct dec_space *space, uint64_t address, uint64_t n);

/* Whether the process had optimised uprobes at any time (a mapping `[uprobes-trampoline]`; Linux 6.18,
 * arch/x86/kernel/uprobes.c): a NOP of 5 bytes in a file, of 10 bytes from Linux 7.2 on, may then be a CALL
 * to that mapping in memory. */
bool dec_space_probed(const struct dec_space *space);

/* From when on dec_space_find() or dec_space_read() may answer otherwise than at `time`, for addresses that
 * the space answers for itself: the next time that a mapping is replaced or ends. UINT64_MAX: never. */
uint64_t dec_space_stable(const struct dec_space *space, uint64_t time);

/* Copies up to n code bytes at `address` as they were at `time`, across adjoining mappings. Returns how many
 * there were. */
size_t dec_space_read(const struct dec_space *space, uint64_t time, uint64_t address, void *buf, size_t n);

/* All mappings ever, ordered by start address. */
size_t dec_space_count(const struct dec_space *space);
const struct dec_mapping *dec_space_at(const struct dec_space *space, size_t index);

#endif
