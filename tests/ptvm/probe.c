// What the probes share: opening the intel_pt PMU, an AUX ring, and counting calls in it with libipt.
#include "probe.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <intel-pt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DATA_PAGES 8

void probe_fact(const char *name, const char *format, ...)
{
    va_list args;

    printf("%s: ", name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void probe_must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "FAILED: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static unsigned read_number(const char *path)
{
    FILE *f = fopen(path, "r");
    unsigned n = 0;

    probe_must(f && fscanf(f, "%u", &n) == 1, path);
    fclose(f);
    return n;
}

unsigned probe_pmu_type(const char *pmu)
{
    char path[128];

    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/type", pmu);
    return read_number(path);
}

unsigned probe_tracepoint(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "/sys/kernel/tracing/events/%s/id", name);
    return read_number(path);
}

void probe_pt_attr(struct perf_event_attr *attr, bool kernel)
{
    memset(attr, 0, sizeof *attr);
    attr->size = sizeof *attr;
    attr->type = probe_pmu_type("intel_pt");
    // pt, mtc, tsc, noretcomp, branch, mtc_period=3, psb_period=3: the bits of the PMU's format files.
    attr->config = 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | 3 << 14 | 3 << 24;
    attr->disabled = 1;
    attr->exclude_kernel = !kernel;
    attr->exclude_hv = 1;
    attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
    attr->sample_id_all = 1;
}

int probe_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

int probe_map(struct probe_ring *ring, int fd, size_t aux_size, bool overwrite)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    memset(ring, 0, sizeof *ring);
    ring->fd = fd;
    ring->map_size = (1 + DATA_PAGES) * page;
    ring->page = mmap(NULL, ring->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring->page == MAP_FAILED)
        return -errno;
    ring->aux_size = aux_size;
    if (aux_size) {
        ring->page->aux_offset = ring->map_size;
        ring->page->aux_size = aux_size;
        ring->aux = mmap(NULL, aux_size, PROT_READ | (overwrite ? 0 : PROT_WRITE), MAP_SHARED, fd,
                         (off_t)ring->page->aux_offset);
        if (ring->aux == MAP_FAILED) {
            int error = errno;

            munmap(ring->page, ring->map_size);
            return -error;
        }
    }
    return 0;
}

void probe_unmap(struct probe_ring *ring)
{
    if (ring->aux)
        munmap(ring->aux, ring->aux_size);
    munmap(ring->page, ring->map_size);
    close(ring->fd);
}

unsigned char *probe_copy(const struct probe_ring *ring, size_t *size)
{
    size_t head = ring->page->aux_head % ring->aux_size;
    size_t old = ring->aux_size - head;
    unsigned char *out = malloc(ring->aux_size);

    probe_must(out != NULL, "memory");
    // Never written: the ring has not wrapped.
    while (old && ring->aux[ring->aux_size - old] == 0)
        old--;
    memcpy(out, ring->aux + ring->aux_size - old, old);
    memcpy(out + old, ring->aux, head);
    *size = old + head;
    return out;
}

unsigned probe_records(const struct probe_ring *ring, uint32_t type, const void **last)
{
    const char *data = (const char *)ring->page + ring->page->data_offset;
    uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    unsigned n = 0;

    for (uint64_t at = 0; at < head && at < ring->page->data_size;) {
        const struct perf_event_header *h = (const void *)(data + at);

        if (h->type == type) {
            n++;
            if (last)
                *last = h + 1;
        }
        if (!h->size)
            break;
        at += h->size;
    }
    return n;
}

uint64_t probe_ksym(const char *name)
{
    FILE *f = fopen("/proc/kallsyms", "r");
    char line[512], sym[256];
    unsigned long long address, found = 0;

    while (f && !found && fgets(line, sizeof line, f))
        if (sscanf(line, "%llx %*c %255s", &address, sym) == 2 && !strcmp(sym, name))
            found = address;
    if (f)
        fclose(f);
    return found;
}

uint64_t probe_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Where the bytes of an address are: user code in this process, kernel code in kcore. */
struct code {
    int mem;

    int kcore;

    Elf64_Phdr seg[64];

    unsigned nseg;
};

static void open_code(struct code *code)
{
    Elf64_Ehdr eh;

    code->nseg = 0;
    code->mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    code->kcore = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
    if (code->kcore < 0 || pread(code->kcore, &eh, sizeof eh, 0) != sizeof eh)
        return;
    for (unsigned i = 0; i < eh.e_phnum && code->nseg < 64; i++) {
        Elf64_Phdr *p = &code->seg[code->nseg];

        if (pread(code->kcore, p, sizeof *p, (off_t)(eh.e_phoff + i * sizeof *p)) == sizeof *p &&
            p->p_type == PT_LOAD)
            code->nseg++;
    }
}

static int read_code(uint8_t *out, size_t size, const struct pt_asid *asid, uint64_t ip, void *context)
{
    const struct code *code = context;
    ssize_t got = -1;

    (void)asid;
    if (!(ip >> 63)) {
        got = pread(code->mem, out, size, (off_t)ip);
    } else {
        for (unsigned i = 0; i < code->nseg; i++) {
            const Elf64_Phdr *p = &code->seg[i];

            if (ip - p->p_vaddr < p->p_memsz)
                got = pread(code->kcore, out, size, (off_t)(ip - p->p_vaddr + p->p_offset));
        }
    }
    return got > 0 ? (int)got : -pte_nomap;
}

static void take_instruction(struct probe_decode *d, const struct pt_insn *insn)
{
    bool kernel = insn->ip >> 63;

    if (d->after && insn->ip == d->after)
        d->kernel_calls_after = 0;
    if (insn->iclass == ptic_call) {
        d->user_calls += !kernel;
        d->kernel_calls += kernel;
        d->kernel_calls_after += kernel;
        d->kernel_calls_enabled += kernel;
    }
    for (size_t i = 0; i < d->n; i++)
        d->counts[i].entered += d->counts[i].address == insn->ip;
}

/* From one synchronisation point to the next error or the end. */
static int follow(struct pt_insn_decoder *decoder, int status, struct probe_decode *d)
{
    struct pt_event event;
    struct pt_insn insn;

    while (status >= 0 && !(status & pts_eos)) {
        while (status >= 0 && status & pts_event_pending) {
            status = pt_insn_event(decoder, &event, sizeof event);
            d->overflows += status >= 0 && event.type == ptev_overflow;
            if (status >= 0 && event.type == ptev_enabled && !event.variant.enabled.resumed)
                d->kernel_calls_enabled = 0;
        }
        if (status < 0 || status & pts_eos)
            break;
        status = pt_insn_next(decoder, &insn, sizeof insn);
        if (status >= 0)
            take_instruction(d, &insn);
    }
    return status;
}

void probe_decode(const unsigned char *trace, size_t size, struct probe_decode *d)
{
    struct pt_image *image = pt_image_alloc(NULL);
    struct pt_insn_decoder *decoder;
    struct pt_config config;
    struct code code;
    int status;

    pt_config_init(&config);
    config.begin = (uint8_t *)trace;
    config.end = (uint8_t *)trace + size;
    config.cpu = (struct pt_cpu){.vendor = pcv_intel, .family = 6, .model = 94, .stepping = 3};
    config.mtc_freq = 3;
    config.nom_freq = 24;
    config.cpuid_0x15_eax = 2;
    config.cpuid_0x15_ebx = 200;
    pt_cpu_errata(&config.errata, &config.cpu);
    open_code(&code);
    decoder = pt_insn_alloc_decoder(&config);
    probe_must(image && decoder, "libipt");
    pt_image_set_callback(image, read_code, &code);
    pt_insn_set_image(decoder, image);
    while ((status = pt_insn_sync_forward(decoder)) >= 0) {
        uint64_t at = 0;

        status = follow(decoder, status, d);
        if (status < 0 && status != -pte_eos && d->errors++ < 3) {
            pt_insn_get_offset(decoder, &at);
            fprintf(stderr, "decode: at %llx of %zx: %s\n", (unsigned long long)at, size,
                    pt_errstr(pt_errcode(status)));
        }
    }
    pt_insn_free_decoder(decoder);
    pt_image_free(image);
    close(code.mem);
    close(code.kcore);
}
