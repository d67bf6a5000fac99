/* Unwinding by libdw. */
#include "decoder/dwarf/unwind.h"

#include "base/vec.h"
#include "decoder/dwarf/debug_tables.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    DWARF_REGISTERS = 17, /* System V ABI, x86-64, figure 3.36: 16, and the return address */
    PERF_SP = 7,
    PERF_IP = 8,
    PERF_REGISTERS = 24
};

/* perf's number (enum perf_event_x86_regs of asm/perf_regs.h) of each of DWARF's. */
static const uint8_t perf_number[DWARF_REGISTERS] = {0,  3,  2,  1,  4,  5,  6,  PERF_SP, 16,
                                                     17, 18, 19, 20, 21, 22, 23, PERF_IP};

/* The sample at hand. */
struct sample {
    Dwarf_Word registers[PERF_REGISTERS];

    const uint8_t *stack;

    uint64_t size;

    uint64_t *frames;

    size_t n;
};

/* libdw's view of an address space. */
struct view {
    const struct dec_space *space;

    Dwfl *dwfl;

    bool attached;
};

struct dec_unwind {
    ST_VEC(struct view) views;

    struct sample sample;
};

int dec_unwind_new(struct dec_unwind **unwind, struct st_error *err)
{
    *unwind = calloc(1, sizeof(**unwind));
    return *unwind ? 0 : st_nomem(err, "the unwinder");
}

void dec_unwind_free(struct dec_unwind *u)
{
    if (!u)
        return;
    for (size_t i = 0; i < u->views.n; i++)
        dwfl_end(u->views.at[i].dwfl);
    st_vec_free(&u->views);
    free(u);
}

/* ------------------------------------------------------------------ */
/* What libdw asks for                                                  */

static int find_no_elf(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base, char **file,
                       Elf **elf)
{
    (void)mod, (void)data, (void)name, (void)base, (void)file, (void)elf;
    return -1;
}

/* The tables that are needed stand in the file itself. */
static int find_no_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
                             const char *file, const char *link, GElf_Word crc, char **debuginfo)
{
    (void)mod, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)debuginfo;
    return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
    (void)dwfl;
    if (*thread_arg)
        return 0;
    *thread_arg = arg;
    return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
    (void)dwfl, (void)tid;
    *thread_arg = arg;
    return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
    const struct sample *s = &((struct dec_unwind *)arg)->sample;
    uint64_t at = address - s->registers[PERF_SP];

    (void)dwfl;
    if (address < s->registers[PERF_SP] || at > s->size || s->size - at < sizeof(*result))
        return false;
    memcpy(result, s->stack + at, sizeof(*result));
    return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
    const struct sample *s = &((struct dec_unwind *)arg)->sample;
    Dwarf_Word registers[DWARF_REGISTERS];

    for (size_t i = 0; i < DWARF_REGISTERS; i++)
        registers[i] = s->registers[perf_number[i]];
    return dwfl_thread_state_registers(thread, 0, DWARF_REGISTERS, registers);
}

static const Dwfl_Callbacks file_callbacks = {.find_elf = find_no_elf, .find_debuginfo = find_no_debuginfo};

static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = next_thread,
                                                       .get_thread = get_thread,
                                                       .memory_read = read_memory,
                                                       .set_initial_registers = set_registers};

static int take_frame(Dwfl_Frame *frame, void *arg)
{
    struct sample *s = &((struct dec_unwind *)arg)->sample;
    Dwarf_Addr pc;
    bool exact;

    if (s->n == DEC_UNWIND_MOST || !dwfl_frame_pc(frame, &pc, &exact) || !pc)
        return DWARF_CB_ABORT;
    s->frames[s->n++] = pc;
    return DWARF_CB_OK;
}

/* ------------------------------------------------------------------ */
/* Modules                                                              */

/* A descriptor of an image that has bytes and no file (the vdso), for libdw to close. -1: none. */
static int as_file(struct dec_image *image)
{
    int fd = image->size ? memfd_create("image", MFD_CLOEXEC) : -1;
    uint8_t buffer[4096];
    uint64_t at = 0;

    while (fd >= 0 && at < image->size) {
        size_t n = dec_image_read(image, at, buffer, sizeof(buffer));

        if (!n || write(fd, buffer, n) != (ssize_t)n)
            break;
        at += n;
    }
    if (fd >= 0 && at < image->size) {
        close(fd);
        return -1;
    }
    return fd;
}

/* libdw opens compressed files too, and all their compressed sections. */
static bool is_affordable(const struct dec_image *image, int fd)
{
    struct dec_elf elf;
    bool affordable;

    if (fd < 0 || dec_elf_open_fd(fd, &elf))
        return false;
    affordable = debug_is_affordable(&elf, image->path);
    dec_elf_close(&elf);
    return affordable;
}

/* The newest of mappings that lie on one another counts. One image has several mappings. */
static void report_modules(Dwfl *dwfl, const struct dec_space *space)
{
    for (size_t i = dec_space_count(space); i-- > 0;) {
        const struct dec_mapping *m = dec_space_at(space, i);
        uint64_t bias = m->start - dec_image_address(m->image, m->pgoff);
        int fd = dec_image_descriptor(m->image), copy;

        if (m->image->kernel || dwfl_addrmodule(dwfl, m->start))
            continue;
        copy = fd >= 0 ? dup(fd) : as_file(m->image); /* libdw closes what it took */
        if (is_affordable(m->image, copy) &&
            dwfl_report_elf(dwfl, m->image->name, m->image->path, copy, bias, true))
            continue;
        if (copy >= 0)
            close(copy);
    }
}

static struct view *view_of(struct dec_unwind *u, const struct dec_space *space)
{
    struct view v = {.space = space};

    for (size_t i = 0; i < u->views.n; i++)
        if (u->views.at[i].space == space)
            return &u->views.at[i];
    v.dwfl = dwfl_begin(&file_callbacks);
    if (!v.dwfl)
        return NULL;
    dwfl_report_begin(v.dwfl);
    report_modules(v.dwfl, space);
    dwfl_report_end(v.dwfl, NULL, NULL);
    v.attached = dwfl_attach_state(v.dwfl, NULL, 1, &thread_callbacks, u);
    if (st_vec_push(&u->views, v)) {
        dwfl_end(v.dwfl);
        return NULL;
    }
    return &u->views.at[u->views.n - 1];
}

static bool take_registers(struct sample *s, const struct pd_sample *sample, uint64_t mask)
{
    size_t at = 0;

    if (sample->user_abi != PERF_SAMPLE_REGS_ABI_64 || !sample->user_regs)
        return false;
    for (unsigned i = 0; i < PERF_REGISTERS; i++)
        s->registers[i] = mask >> i & 1 ? sample->user_regs[at++] : 0;
    return mask >> PERF_SP & mask >> PERF_IP & 1;
}

size_t dec_unwind_sample(struct dec_unwind *u, const struct dec_space *space, const struct pd_sample *sample,
                         uint64_t mask, uint64_t frames[DEC_UNWIND_MOST])
{
    struct sample *s = &u->sample;
    struct view *v;

    *s = (struct sample){.stack = sample->user_stack,
                         .size = sample->user_stack ? sample->user_stack_size : 0,
                         .frames = frames};
    if (!take_registers(s, sample, mask))
        return 0;
    v = view_of(u, space);
    if (v && v->attached)
        dwfl_getthread_frames(v->dwfl, 1, take_frame, u);
    if (!s->n)
        frames[s->n++] = s->registers[PERF_IP];
    return s->n;
}
